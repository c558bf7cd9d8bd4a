// The check that the routes `one` and `few` agree bit for bit on this device.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "ops/fixed_data.h"
#include "ops/linear/linear.h"
#include "ops/quantize/quantize.h"

namespace tandem::ops {
namespace {

// Two workgroups show how a pipeline computes a row.
constexpr uint64_t checked_groups = 2;
constexpr uint64_t most_rows_per_group = 1024;

}  // namespace

// What two pipelines make of the rows of x: one row at a time, and several at once.
struct RowCheck::Part {
  Route one;
  Route few;
  uint32_t part_rows = 0;
  uint32_t outputs = 0;
  FixedWeights weights;

  struct Product {
    gpu::Buffer step, x, times, y;
    gpu::Readback readback;
  };
  std::vector<Product> alone;     // of each row
  std::vector<Product> together;  // of the first, the first two, ... rows

  // Submits the product of these rows of x; `times` is all ones.
  Result<Product> product(gpu::Device& device, const Route& route, uint32_t rows,
                          std::span<const uint32_t> x_words) const {
    const std::vector<float> ones(size_t{rows} * outputs, 1.0f);
    const Step step_value{.rows = rows};
    Product product;
    TRY_ASSIGN(product.step, upload(device, std::as_bytes(std::span(&step_value, 1))));
    TRY_ASSIGN(product.x, upload(device, std::as_bytes(x_words)));
    TRY_ASSIGN(product.times, upload(device, std::as_bytes(std::span(ones))));
    TRY_ASSIGN(product.y, device.make_buffer(product.times.bytes(), "bit-identity check"));
    gpu::CommandList commands(device);
    TRY(dispatch(commands, route,
                 {gpu::uniform(product.step.view()), gpu::read(weights.values.view()),
                  gpu::read(weights.bound_scales()), gpu::read(product.x.view()),
                  gpu::read(product.times.view()), gpu::read_write(product.y.view())}));
    gpu::Submission submission;
    submission.items.push_back({&commands, {rows, 1}});
    submission.read_back = product.y.view();
    TRY_ASSIGN(product.readback, device.submit(submission));
    return product;
  }

  Result<void> submit(gpu::Device& device, const Linear& op) {
    const uint32_t columns = op.weights.columns;
    TRY_ASSIGN(weights,
               FixedWeights::make(
                   device, op.weights.type,
                   std::min<uint64_t>(part_rows, checked_groups * most_rows_per_group), columns));
    const uint64_t row_bytes = uint64_t{std::max(outputs, columns)} * sizeof(float);
    const uint64_t fitting = device.info().limits.max_binding_bytes / row_bytes;
    const auto rows = static_cast<uint32_t>(std::clamp<uint64_t>(fitting, 1, op.few_rows));
    const std::vector<float> floats = fixed_floats(size_t{rows} * columns);
    std::vector<uint32_t> x(floats.size());
    std::transform(floats.begin(), floats.end(), x.begin(), std::bit_cast<uint32_t, float>);
    if (op.x_format == RowFormat::int8) x = int8_rows_reference(columns, floats);
    for (uint32_t row = 0; row < rows; ++row) {
      TRY_ASSIGN(alone.emplace_back(),
                 product(device, one, 1, std::span(x).subspan(size_t{row} * columns, columns)));
    }
    for (uint32_t count = 1; count <= rows; ++count) {
      TRY_ASSIGN(together.emplace_back(),
                 product(device, few, count, std::span(x).first(size_t{count} * columns)));
    }
    return {};
  }

  // Whether all products have been read back.
  Result<bool> ready(gpu::Device& device, bool wait) const {
    for (const auto* products : {&alone, &together}) {
      for (const Product& product : *products) {
        if (wait) TRY(device.wait(product.readback));
        if (!product.readback.ready()) return false;
      }
    }
    return true;
  }

  Result<bool> identical() {
    std::vector<std::byte> rows;
    for (Product& product : alone) {
      TRY_ASSIGN(const std::vector<std::byte> y, product.readback.take());
      rows.insert(rows.end(), y.begin(), y.end());
    }
    for (Product& product : together) {
      TRY_ASSIGN(const std::vector<std::byte> y, product.readback.take());
      if (!std::equal(y.begin(), y.end(), rows.begin())) return false;
    }
    return true;
  }
};

RowCheck::RowCheck(gpu::Device& device, const Linear& op) : device_(&device), op_(op) {}
RowCheck::RowCheck(RowCheck&&) noexcept = default;
RowCheck& RowCheck::operator=(RowCheck&&) noexcept = default;
RowCheck::~RowCheck() = default;

Result<RowCheck> RowCheck::begin(gpu::Device& device, const Linear& op) {
  RowCheck check(device, op);
  std::vector<uint32_t> sizes = {op.weights.parts.front().rows};
  // All parts but the last are alike.
  if (const uint32_t last = op.weights.parts.back().rows; last != sizes[0]) sizes.push_back(last);
  for (const uint32_t part_rows : sizes) {
    Part part;
    part.part_rows = part_rows;
    part.outputs = op.weights.rows / (op.epilogue == Epilogue::gelu_pair ? 2 : 1);
    // The pipelines of a part, but for its first workgroups only.
    const auto route = [&](RowRoute rows) {
      check.op_.rows = rows;
      Route result = linear_route(check.op_, {0, part_rows, {}, {}}, device.info());
      result.grid.groups = std::min(result.grid.groups, checked_groups);
      return result;
    };
    part.one = route(RowRoute::one);
    part.few = route(RowRoute::few);
    TRY(device.kernel(part.one.kernel, part.one.constants));
    TRY(device.kernel(part.few.kernel, part.few.constants));
    check.parts_.push_back(std::move(part));
  }
  return check;
}

Result<std::optional<bool>> RowCheck::identical(bool wait) {
  if (wait) TRY(device_->finish_kernels());
  TRY_ASSIGN(const uint32_t unfinished, device_->unfinished());
  if (unfinished > 0) return std::nullopt;
  if (parts_.front().alone.empty()) {
    for (Part& part : parts_) TRY(part.submit(*device_, op_));
  }
  for (const Part& part : parts_) {
    TRY_ASSIGN(const bool ready, part.ready(*device_, wait));
    if (!ready) return std::nullopt;
  }
  bool same = true;
  for (Part& part : parts_) {
    TRY_ASSIGN(const bool same_in_part, part.identical());
    same &= same_in_part;
  }
  return same;
}

}  // namespace tandem::ops
