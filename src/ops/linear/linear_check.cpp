// The check that the routes `one` and `few` agree bit for bit on this device.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/half.h"
#include "ops/linear/linear.h"

namespace tandem::ops {
namespace {

// Two workgroups show how a pipeline computes a row.
constexpr uint64_t checked_groups = 2;
constexpr uint64_t most_rows_per_group = 256;
constexpr uint32_t most_rows = 4;  // of x

// A fixed sequence of values in [-1, 1).
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

using Words = std::vector<uint32_t>;

// A plane of `bytes` bytes whose words come from `next`.
template <class Next>
Words plane(uint64_t bytes, Next next) {
  Words words((bytes + 3) / 4);
  for (uint32_t& word : words) word = next();
  return words;
}

Result<gpu::Buffer> upload(gpu::Device& device, std::span<const std::byte> bytes) {
  TRY_ASSIGN(gpu::Buffer buffer, device.make_buffer(bytes.size(), "bit-identity check"));
  TRY(device.write(buffer.view(), bytes));
  return buffer;
}

struct Fixture {
  gpu::Device& device;
  gpu::Buffer values;
  gpu::Buffer scales;
};

Result<Fixture> make_weights(gpu::Device& device, spec::WeightType type, uint32_t columns,
                             uint64_t rows) {
  Values random;
  auto halves = [&](float middle, float spread) {
    auto half = [&] { return uint32_t{to_half(middle + spread * random.next())}; };
    return half() | half() << 16;
  };
  auto values = [&]() -> uint32_t {
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
  Fixture fixture{device, {}, {}};
  const Words value_words = plane(rows * planes[0].bytes_per_row, values);
  TRY_ASSIGN(fixture.values, upload(device, std::as_bytes(std::span(value_words))));
  if (planes.size() > 1) {
    const Words scale_words =
        plane(rows * planes[1].bytes_per_row, [&] { return halves(0.02f, 0.01f); });
    TRY_ASSIGN(fixture.scales, upload(device, std::as_bytes(std::span(scale_words))));
  }
  return fixture;
}

// The bytes of y for these rows of x; `times` is all ones.
Result<std::vector<std::byte>> product(const Fixture& weights, const Route& route, uint32_t rows,
                                       uint32_t outputs, std::span<const float> x) {
  gpu::Device& device = weights.device;
  const std::vector<float> ones(size_t{rows} * outputs, 1.0f);
  const Step step{.rows = rows};
  TRY_ASSIGN(const gpu::Buffer step_buffer, upload(device, std::as_bytes(std::span(&step, 1))));
  TRY_ASSIGN(const gpu::Buffer x_buffer, upload(device, std::as_bytes(x)));
  TRY_ASSIGN(const gpu::Buffer times, upload(device, std::as_bytes(std::span(ones))));
  TRY_ASSIGN(const gpu::Buffer y, device.make_buffer(times.bytes(), "bit-identity check"));
  const gpu::Buffer& scales = weights.scales.bytes() != 0 ? weights.scales : weights.values;
  gpu::CommandList commands(device);
  TRY(dispatch(
      commands, route,
      {gpu::uniform(step_buffer.view()), gpu::read(weights.values.view()), gpu::read(scales.view()),
       gpu::read(x_buffer.view()), gpu::read(times.view()), gpu::read_write(y.view())}));
  gpu::Submission submission;
  submission.items.push_back({&commands, {rows, 1}});
  submission.read_back = y.view();
  TRY_ASSIGN(gpu::Readback readback, device.submit(submission));
  TRY(device.wait(readback));
  return readback.take();
}

// Runs the pipelines of a part of `part_rows` rows, but for the first workgroups only.
Result<bool> part_is_bit_identical(gpu::Device& device, Linear op, uint32_t part_rows) {
  const MatrixPart part{0, part_rows, {}, {}};
  const uint32_t columns = op.weights.columns;
  const uint32_t outputs = op.weights.rows / (op.epilogue == Epilogue::gelu_pair ? 2 : 1);
  const auto route = [&](RowRoute rows) {
    op.rows = rows;
    Route result = linear_route(op, part, device.info());
    result.grid.groups = std::min(result.grid.groups, checked_groups);
    return result;
  };
  const Route one = route(RowRoute::one);
  const Route few = route(RowRoute::few);
  TRY_ASSIGN(const Fixture weights,
             make_weights(device, op.weights.type, columns,
                          std::min<uint64_t>(part_rows, checked_groups * most_rows_per_group)));

  const uint64_t row_bytes = uint64_t{std::max(outputs, columns)} * sizeof(float);
  const uint64_t fitting = device.info().limits.max_binding_bytes / row_bytes;
  const auto rows = static_cast<uint32_t>(std::clamp<uint64_t>(fitting, 1, most_rows));
  Values random;
  std::vector<float> x(size_t{rows} * columns);
  for (float& value : x) value = random.next();

  std::vector<std::byte> alone;  // y of each row computed by `one`
  for (uint32_t row = 0; row < rows; ++row) {
    TRY_ASSIGN(
        const std::vector<std::byte> y,
        product(weights, one, 1, outputs, std::span(x).subspan(size_t{row} * columns, columns)));
    alone.insert(alone.end(), y.begin(), y.end());
  }
  for (uint32_t count = 1; count <= rows; ++count) {
    TRY_ASSIGN(const std::vector<std::byte> together,
               product(weights, few, count, outputs, std::span(x).first(size_t{count} * columns)));
    if (!std::equal(together.begin(), together.end(), alone.begin())) return false;
  }
  return true;
}

}  // namespace

Result<bool> rows_are_bit_identical(gpu::Device& device, const Linear& op) {
  // All parts but the last are alike.
  const std::vector<MatrixPart>& parts = op.weights.parts;
  TRY_ASSIGN(bool identical, part_is_bit_identical(device, op, parts.front().rows));
  if (identical && parts.back().rows != parts.front().rows) {
    return part_is_bit_identical(device, op, parts.back().rows);
  }
  return identical;
}

}  // namespace tandem::ops
