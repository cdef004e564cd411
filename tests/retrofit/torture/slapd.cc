// OpenLDAP's slapd, which others have started: this is a client of it, and the path is its URL.  It
// answers a change once that is durable, so an operation is one change.
#include <ldap.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <utility>

#include "torture/store.h"

namespace pawl::retrofit {
namespace {

constexpr const char* kBase = "dc=example,dc=org";
constexpr const char* kAdministrator = "cn=admin,dc=example,dc=org";
constexpr const char* kPassword = "secret";
constexpr int kConnectTriesMax = 400;
constexpr useconds_t kBetweenTriesMicroseconds = 50'000;
constexpr std::size_t kPrefixBytes = 8;

void expect_ldap(int outcome, const char* call) {
  if (outcome != LDAP_SUCCESS) die(std::string(call) + ": " + ldap_err2string(outcome));
}

// An attribute with one value, as the calls want it.
class Attribute {
 public:
  Attribute(int change, std::string name, std::string value)
      : name_(std::move(name)),
        value_(std::move(value)),
        values_{value_.data(), nullptr},
        change_{change, name_.data(), {values_.data()}} {}
  Attribute(const Attribute&) = delete;
  Attribute& operator=(const Attribute&) = delete;
  LDAPMod* get() { return &change_; }

 private:
  std::string name_;
  std::string value_;
  std::array<char*, 2> values_;
  LDAPMod change_;
};

// The value stands in the entry twice, its beginning in an attribute with an index.
std::string indexed_part(const std::string& value) { return value.substr(0, kPrefixBytes); }

class SlapdClient final : public Store {
 public:
  SlapdClient(const std::string& url, bool create) {
    expect_ldap(ldap_initialize(&connection_, url.c_str()), "ldap_initialize");
    const int version = LDAP_VERSION3;
    expect_ldap(ldap_set_option(connection_, LDAP_OPT_PROTOCOL_VERSION, &version),
                "ldap_set_option");
    bind();
    if (create) add_base();
  }

  bool was_repaired() override { return false; }  // it knows no repair
  void set(const std::string& key, const std::string& value) override {
    Attribute text(LDAP_MOD_REPLACE, "description", value);
    Attribute indexed(LDAP_MOD_REPLACE, "sn", indexed_part(value));
    std::array<LDAPMod*, 3> changes{text.get(), indexed.get(), nullptr};
    const int outcome =
        ldap_modify_ext_s(connection_, name_of(key).c_str(), changes.data(), nullptr, nullptr);
    if (outcome == LDAP_NO_SUCH_OBJECT) {
      add(key, value);
    } else {
      expect_ldap(outcome, "ldap_modify");
    }
  }
  void append(const std::string& key, const std::string& value) override {
    const Model found = search("(cn=" + key + ")");
    set(key, found.empty() ? value : found.begin()->second + value);
  }
  void remove(const std::string& key) override {
    const int outcome = ldap_delete_ext_s(connection_, name_of(key).c_str(), nullptr, nullptr);
    if (outcome != LDAP_NO_SUCH_OBJECT) expect_ldap(outcome, "ldap_delete");
  }
  void synchronise() override {}
  Model records() override { return search("(objectClass=person)"); }
  void check(const Model& found) override {
    for (const auto& [key, value] : found) {
      if (search("(&(cn=" + key + ")(sn=" + indexed_part(value) + "))").size() != 1)
        die("its indexes do not lead to " + key);
    }
  }
  void close() override { ldap_unbind_ext_s(connection_, nullptr, nullptr); }

 private:
  static std::string name_of(const std::string& key) { return "cn=" + key + "," + kBase; }

  void bind() {
    std::string password = kPassword;
    berval credentials{password.size(), password.data()};
    int outcome = LDAP_SERVER_DOWN;
    // It may be starting.
    for (int tries = 0; outcome == LDAP_SERVER_DOWN && tries < kConnectTriesMax; ++tries) {
      if (tries > 0) usleep(kBetweenTriesMicroseconds);
      outcome = ldap_sasl_bind_s(connection_, kAdministrator, LDAP_SASL_SIMPLE, &credentials,
                                 nullptr, nullptr, nullptr);
    }
    expect_ldap(outcome, "ldap_sasl_bind");
  }

  void add_base() {
    Attribute kind(LDAP_MOD_ADD, "objectClass", "domain");
    Attribute name(LDAP_MOD_ADD, "dc", "example");
    std::array<LDAPMod*, 3> entry{kind.get(), name.get(), nullptr};
    expect_ldap(ldap_add_ext_s(connection_, kBase, entry.data(), nullptr, nullptr), "ldap_add");
  }

  void add(const std::string& key, const std::string& value) {
    Attribute kind(LDAP_MOD_ADD, "objectClass", "person");
    Attribute name(LDAP_MOD_ADD, "cn", key);
    Attribute text(LDAP_MOD_ADD, "description", value);
    Attribute indexed(LDAP_MOD_ADD, "sn", indexed_part(value));
    std::array<LDAPMod*, 5> entry{kind.get(), name.get(), text.get(), indexed.get(), nullptr};
    expect_ldap(ldap_add_ext_s(connection_, name_of(key).c_str(), entry.data(), nullptr, nullptr),
                "ldap_add");
  }

  // The one value of an attribute.
  std::string value_of(LDAPMessage* entry, const char* attribute) {
    const std::unique_ptr<berval*, void (*)(berval**)> values(
        ldap_get_values_len(connection_, entry, attribute), ldap_value_free_len);
    if (ldap_count_values_len(values.get()) != 1)
      die(std::string("an entry does not have one ") + attribute);
    const berval* const value = *values.get();
    return {value->bv_val, value->bv_len};
  }

  Model search(const std::string& filter) {
    LDAPMessage* answer = nullptr;
    expect_ldap(ldap_search_ext_s(connection_, kBase, LDAP_SCOPE_ONELEVEL, filter.c_str(), nullptr,
                                  0, nullptr, nullptr, nullptr, LDAP_NO_LIMIT, &answer),
                "ldap_search");
    const std::unique_ptr<LDAPMessage, int (*)(LDAPMessage*)> kept(answer, ldap_msgfree);
    Model found;
    for (LDAPMessage* entry = ldap_first_entry(connection_, answer); entry != nullptr;
         entry = ldap_next_entry(connection_, entry)) {
      const std::string key = value_of(entry, "cn");
      const std::string value = value_of(entry, "description");
      if (value_of(entry, "sn") != indexed_part(value))
        die(key + " is half of one state and half of another");
      found[key] = value;
    }
    return found;
  }

  LDAP* connection_ = nullptr;
};

}  // namespace

std::vector<StoreKind> slapd_kinds() {
  StoreKind kind{"slapd", "", "", [](const std::string& url, bool create) {
                   return std::make_unique<SlapdClient>(url, create);
                 }};
  kind.commits_each_change = true;
  return {kind};
}

}  // namespace pawl::retrofit
