// The module of programs that compute.  It is compiled twice: as any program is, and by
// pawl-clang++.  Their code is that of libraries which consist of headers, and so is compiled, all
// of it, with them: nlohmann-json (parse and print), stb (compress an image as PNG, and decode it),
// and Eigen (multiply and factorise matrices).
#include <Eigen/Dense>
#include <nlohmann/json.hpp>

#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#include <stb/stb_image.h>

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image_write.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "snapshot/programs.h"

namespace pawl::bench {
namespace {

class Random {
 public:
  std::uint64_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 33;
  }

 private:
  std::uint64_t state_ = 1;
};

// A document of records, as services exchange them.
std::string make_text() {
  constexpr int kRecords = 1500;
  Random random;
  nlohmann::json records = nlohmann::json::array();
  for (int i = 0; i < kRecords; ++i) {
    nlohmann::json record;
    record["id"] = i;
    record["name"] = "record " + std::to_string(random.next() % 1000);
    record["ratio"] = static_cast<double>(random.next() % 100'000) / 7;
    record["is_new"] = random.next() % 2 == 0;
    for (int tag = 0; tag < 6; ++tag) record["tags"].push_back(random.next() % 1'000'000);
    record["place"] = {{"x", random.next() % 4096}, {"y", random.next() % 4096}};
    records.push_back(record);
  }
  return records.dump();
}

std::uint64_t run_json() {
  static const std::string text = make_text();
  const std::string again = nlohmann::json::parse(text).dump();
  if (again != text) throw std::runtime_error("json: it does not print what it read");
  return again.size();
}

constexpr int kWidth = 512;
constexpr int kHeight = 384;
constexpr int kChannels = 3;

// Smooth, with a little noise, as photographs are.
std::vector<unsigned char> make_image() {
  Random random;
  std::vector<unsigned char> pixels;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      for (int channel = 0; channel < kChannels; ++channel) {
        const double wave = 100 * std::sin(x * 0.02 + channel) * std::cos(y * 0.03);
        pixels.push_back(static_cast<unsigned char>(128 + static_cast<int>(wave) +
                                                    static_cast<int>(random.next() % 8)));
      }
    }
  }
  return pixels;
}

std::uint64_t run_png() {
  static const std::vector<unsigned char> image = make_image();
  int bytes = 0;
  const std::unique_ptr<unsigned char, decltype(&std::free)> png(
      stbi_write_png_to_mem(image.data(), kWidth * kChannels, kWidth, kHeight, kChannels, &bytes),
      &std::free);
  int width = 0;
  int height = 0;
  int channels = 0;
  const std::unique_ptr<unsigned char, decltype(&std::free)> again(
      stbi_load_from_memory(png.get(), bytes, &width, &height, &channels, kChannels), &std::free);
  if (again == nullptr || !std::equal(image.begin(), image.end(), again.get()))
    throw std::runtime_error("png: it does not decode what it encoded");
  return static_cast<std::uint64_t>(bytes);
}

std::uint64_t run_linear_algebra() {
  constexpr int kSize = 256;
  static const Eigen::MatrixXd left = [] {
    Random random;
    return Eigen::MatrixXd::NullaryExpr(
               kSize, kSize, [&] { return static_cast<double>(random.next() % 2000) / 1000 - 1; })
        .eval();
  }();
  const Eigen::MatrixXd product = left * left.transpose();
  const Eigen::VectorXd solution = product.partialPivLu().solve(Eigen::VectorXd::Ones(kSize));
  if (!((product * solution - Eigen::VectorXd::Ones(kSize)).norm() < 1e-3))
    throw std::runtime_error("linear algebra: the solution does not solve it");
  return static_cast<std::uint64_t>(solution.size());
}

}  // namespace

extern "C" __attribute__((visibility("default"))) std::uint64_t run_program(std::uint32_t program) {
  switch (program) {
    case 0:
      return run_json();
    case 1:
      return run_png();
    default:
      return run_linear_algebra();
  }
}

}  // namespace pawl::bench
