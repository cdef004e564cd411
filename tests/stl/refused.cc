// What the compiler must refuse, one piece for each value of REFUSED; see check_refused.sh.  With 0
// all is well.
#include <memory_resource>
#include <pawl/heap.hpp>
#include <stack>
#include <string>
#include <vector>

struct Virtual {
  virtual ~Virtual() = default;
};

void refused(pawl::heap& heap) {
  heap.root<pawl::map<pawl::string, long>>();
  heap.named<pawl::vector<std::pair<pawl::string, std::optional<long*>>>>("pairs").emplace_back();
  heap.named<std::pmr::vector<std::pmr::string>>("pmr").emplace_back("a line");
#if REFUSED == 1  // virtual functions
  heap.root<Virtual>();
#elif REFUSED == 2   // virtual functions
  heap.root<pawl::vector<Virtual>>().emplace_back();
#elif REFUSED == 3   // virtual functions
  heap.root<pawl::map<long, Virtual>>()[1];
#elif REFUSED == 4   // outside of the persistent heap
  heap.root<pawl::vector<std::string>>().emplace_back();
#elif REFUSED == 5   // outside of the persistent heap
  heap.root<pawl::map<std::string, long>>()["key"];
#elif REFUSED == 6   // outside of the persistent heap
  heap.root<std::vector<long>>();
#elif REFUSED == 7   // outside of the persistent heap
  heap.root<std::tuple<long, std::optional<std::map<long, long>>>>();
#elif REFUSED == 8   // gone in the next run
  heap.root<pawl::vector<std::function<void()>>>().emplace_back();
#elif REFUSED == 9   // gone in the next run
  heap.root<pawl::map<long, std::unique_ptr<long>>>()[1];
#elif REFUSED == 10  // gone in the next run
  heap.root<std::variant<long, std::shared_ptr<long>>>();
#elif REFUSED == 11  // gone in the next run
  heap.make<void (*)()>(nullptr);
#elif REFUSED == 12  // gone in the next run
  heap.root<std::array<std::any, 2>>();
#elif REFUSED == 13  // gone in the next run
  heap.root<pawl::map<long, long, std::function<bool(long, long)>>>();
#elif REFUSED == 14  // gone in the next run
  heap.root<pawl::unordered_set<long, std::size_t (*)(long)>>();
#elif REFUSED == 16  // outside of the persistent heap
  heap.root<std::stack<int>>();
#elif REFUSED == 17  // gone in the next run
  heap.root<pawl::vector<std::filesystem::path>>().emplace_back();
#elif REFUSED == 18  // gone in the next run
  heap.root<std::pair<int, std::exception_ptr>>();
#elif REFUSED == 19  // leave it out
  heap.named<std::pmr::vector<std::pmr::string>>("pmr", heap.resource());
#elif REFUSED == 15  // take std::array
  heap.root<long[2]>();
#endif
}
