#include "ops/fixed_data.h"

#include <bit>

#include "base/error.h"
#include "base/half.h"

namespace tandem::ops {
namespace {

class Values {
 public:
  float next() { return static_cast<float>(static_cast<int32_t>(next_bits())) * 0x1p-31f; }
  uint32_t next_bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 32);
  }

 private:
  uint64_t state_ = 1;
};

// A plane of `bytes` bytes whose words come from `next`.
template <class Next>
Result<gpu::Buffer> plane(gpu::Device& device, uint64_t bytes, Next next) {
  std::vector<uint32_t> words((bytes + 3) / 4);
  for (uint32_t& word : words) word = next();
  return upload(device, std::as_bytes(std::span(words)));
}

}  // namespace

std::vector<float> fixed_floats(size_t count) {
  Values random;
  std::vector<float> floats(count);
  for (float& value : floats) value = random.next();
  return floats;
}

Result<FixedWeights> FixedWeights::make(gpu::Device& device, spec::WeightType type, uint64_t rows,
                                        uint32_t columns) {
  Values random;
  auto halves = [&](float middle, float spread) {
    auto half = [&] { return uint32_t{to_half(middle + spread * random.next())}; };
    return half() | half() << 16;
  };
  auto next_word = [&]() -> uint32_t {
    switch (type) {
      case spec::WeightType::f16:
        return halves(0, 1);
      case spec::WeightType::f32:
        return std::bit_cast<uint32_t>(random.next());
      default:
        return random.next_bits();
    }
  };
  const std::vector<spec::PlaneLayout> planes = spec::planes(type, columns);
  FixedWeights weights;
  TRY_ASSIGN(weights.values, plane(device, rows * planes[0].bytes_per_row, next_word));
  if (planes.size() == 1) return weights;
  TRY_ASSIGN(weights.scales,
             plane(device, rows * planes[1].bytes_per_row, [&] { return halves(0.02f, 0.01f); }));
  return weights;
}

Result<gpu::Buffer> upload(gpu::Device& device, std::span<const std::byte> bytes) {
  TRY_ASSIGN(gpu::Buffer buffer, device.make_buffer(bytes.size(), "bit-identity check"));
  TRY(device.write(buffer.view(), bytes));
  return buffer;
}

}  // namespace tandem::ops
