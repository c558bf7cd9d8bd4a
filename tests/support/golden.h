// Golden files of tests/golden: tensors of a safetensors file by name, and its JSON index.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tandem::test {

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << ": cannot be read";
  return {std::istreambuf_iterator<char>(file), {}};
}

class Golden {
 public:
  // "target" reads tests/golden/target.json and target.safetensors.
  explicit Golden(const std::string& name) {
    const std::string base = std::string(TANDEM_SOURCE_DIR) + "/tests/golden/" + name;
    index_ = nlohmann::json::parse(read_text(base + ".json"));
    bytes_ = read_text(base + ".safetensors");
    uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), sizeof(length));
    header_ = nlohmann::json::parse(bytes_.substr(8, length));
    data_ = 8 + length;
  }

  const nlohmann::json& index() const { return index_; }
  std::vector<float> floats(const std::string& tensor) const { return read<float>(tensor, "F32"); }
  std::vector<uint32_t> ids(const std::string& tensor) const {
    return read<uint32_t>(tensor, "I32");
  }

 private:
  template <class T>
  std::vector<T> read(const std::string& tensor, const std::string& dtype) const {
    const nlohmann::json& entry = header_.at(tensor);
    EXPECT_EQ(entry.at("dtype"), dtype) << tensor;
    const uint64_t begin = entry.at("data_offsets").at(0);
    const uint64_t end = entry.at("data_offsets").at(1);
    std::vector<T> values((end - begin) / sizeof(T));
    std::memcpy(values.data(), bytes_.data() + data_ + begin, end - begin);
    return values;
  }

  nlohmann::json index_;
  nlohmann::json header_;
  std::string bytes_;
  size_t data_ = 0;
};

}  // namespace tandem::test
