// All planes of an artifact, as a loader gets them, and the weights in them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "exporter/decode.h"
#include "support/refusal.h"

namespace tandem::test {

class PlaneStore : public artifact::WeightSink {
 public:
  Result<void> write(std::string_view plane, uint64_t offset,
                     std::span<const std::byte> bytes) override {
    std::vector<std::byte>& stored = planes[std::string(plane)];
    EXPECT_EQ(stored.size(), offset) << plane;
    stored.insert(stored.end(), bytes.begin(), bytes.end());
    return {};
  }
  std::map<std::string, std::vector<std::byte>> planes;
};

// The rows of every tensor, decoded.
using Weights = std::map<std::string, std::vector<std::vector<float>>>;

inline Weights read_weights(const std::filesystem::path& folder,
                            artifact::View view = artifact::View::plain) {
  const auto opened = artifact::Artifact::open(folder, view);
  EXPECT_TRUE(accepted(opened));
  if (!opened) return {};
  PlaneStore store;
  EXPECT_TRUE(accepted(artifact::load(*opened, store)));
  Weights weights;
  for (const artifact::TensorEntry& tensor : opened->manifest().tensors) {
    if (view == artifact::View::plain && spec::is_assistants(tensor.name)) continue;
    const auto planes = spec::planes(tensor.type, tensor.columns);
    for (uint32_t row = 0; row < tensor.rows; ++row) {
      std::span<const std::byte> parts[2];
      for (size_t i = 0; i < planes.size(); ++i) {
        const std::vector<std::byte>& plane =
            store.planes[tensor.name + "." + std::string(planes[i].suffix)];
        parts[i] = std::span(plane).subspan(row * planes[i].bytes_per_row, planes[i].bytes_per_row);
      }
      weights[tensor.name].push_back(decode_row(tensor.type, parts[0], parts[1]));
    }
  }
  return weights;
}

}  // namespace tandem::test
