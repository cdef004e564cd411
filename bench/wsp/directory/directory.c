#include "directory/directory.h"

#include "atomically.h"

struct node {
  struct node* left;
  struct node* right;
  uint64_t height;
  struct directory_entry entry;
};
struct directory {
  struct node* root;
  uint64_t entries; /* the nodes that are cut off */
  uint64_t entries_max;
  struct node nodes[];
};

size_t directory_bytes(uint64_t entries_max) {
  return sizeof(struct directory) + entries_max * sizeof(struct node);
}

struct directory* directory_make(void* memory, uint64_t entries_max) {
  struct directory* const directory = memory;
  directory->entries_max = entries_max;
  return directory;
}

static inline uint64_t height_of(const struct node* node) {
  return node == NULL ? 0 : node->height;
}

/* Words that stay as they are are not stored to: in some forms that is dear. */
static inline void set_left(struct node* node, struct node* left) {
  if (node->left != left) node->left = left;
}
static inline void set_right(struct node* node, struct node* right) {
  if (node->right != right) node->right = right;
}
static inline void set_height(struct node* node) {
  const uint64_t left = height_of(node->left);
  const uint64_t right = height_of(node->right);
  const uint64_t height = 1 + (left > right ? left : right);
  if (node->height != height) node->height = height;
}

static inline struct node* rotate_right(struct node* node) {
  struct node* const top = node->left;
  set_left(node, top->right);
  set_right(top, node);
  set_height(node);
  set_height(top);
  return top;
}
static inline struct node* rotate_left(struct node* node) {
  struct node* const top = node->right;
  set_right(node, top->left);
  set_left(top, node);
  set_height(node);
  set_height(top);
  return top;
}

/* The top of what was this node's tree. */
static inline struct node* balance(struct node* node) {
  const uint64_t left = height_of(node->left);
  const uint64_t right = height_of(node->right);
  if (left > right + 1) {
    if (height_of(node->left->left) < height_of(node->left->right))
      set_left(node, rotate_left(node->left));
    return rotate_right(node);
  }
  if (right > left + 1) {
    if (height_of(node->right->right) < height_of(node->right->left))
      set_right(node, rotate_right(node->right));
    return rotate_left(node);
  }
  set_height(node);
  return node;
}

static inline int compare(const uint64_t* name, const uint64_t* other) {
  for (int i = 0; i < DIRECTORY_NAME_WORDS; ++i) {
    if (name[i] != other[i]) return name[i] < other[i] ? -1 : 1;
  }
  return 0;
}

/* Puts the new node into the tree below `node`, and returns its top; the same, when the name is
 * there. */
static struct node* put(struct node* node, struct node* new_node) {
  if (node == NULL) return new_node;
  const int order = compare(new_node->entry.name, node->entry.name);
  if (order == 0) return node;
  if (order < 0) {
    set_left(node, put(node->left, new_node));
  } else {
    set_right(node, put(node->right, new_node));
  }
  return balance(node);
}

static bool has(const struct directory* directory, const uint64_t* name) {
  const struct node* node = directory->root;
  while (node != NULL) {
    const int order = compare(name, node->entry.name);
    if (order == 0) return true;
    node = order < 0 ? node->left : node->right;
  }
  return false;
}

static inline bool insert(struct directory* directory, const struct directory_entry* entry) {
  if (directory->entries == directory->entries_max || has(directory, entry->name)) return false;
  struct node* const node = &directory->nodes[directory->entries];
  for (int i = 0; i < DIRECTORY_NAME_WORDS; ++i) node->entry.name[i] = entry->name[i];
  for (int i = 0; i < DIRECTORY_VALUE_WORDS; ++i) node->entry.value[i] = entry->value[i];
  node->height = 1;
  ++directory->entries;
  struct node* const root = put(directory->root, node);
  if (directory->root != root) directory->root = root;
  return true;
}

bool directory_insert(struct directory* directory, const struct directory_entry* entry) {
  bool is_new = false;
  ATOMICALLY(is_new = insert(directory, entry));
  return is_new;
}

uint64_t directory_entries(const struct directory* directory) { return directory->entries; }

/* The height of a sound tree between the names, else more than any has. */
static uint64_t sound_height(const struct node* node, const uint64_t* above,
                             const uint64_t* below) {
  const uint64_t unsound = UINT64_MAX / 4;
  if (node == NULL) return 0;
  if ((above != NULL && compare(node->entry.name, above) <= 0) ||
      (below != NULL && compare(node->entry.name, below) >= 0))
    return unsound;
  const uint64_t left = sound_height(node->left, above, node->entry.name);
  const uint64_t right = sound_height(node->right, node->entry.name, below);
  const uint64_t height = 1 + (left > right ? left : right);
  if (left > right + 1 || right > left + 1 || height != node->height) return unsound;
  return height;
}

bool directory_is_sound(const struct directory* directory, uint64_t* height) {
  *height = sound_height(directory->root, NULL, NULL);
  return *height < UINT64_MAX / 8;
}
