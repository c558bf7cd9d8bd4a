// What counts is how long a kernel takes in decode: in one pass with others, each after the one
// before. So a product is timed between the model's other ones, whose time is then taken off, by
// the GPU's own clock. Alone, one after the other, kernels with much code seem faster than they
// are; in passes of their own, those that begin at once do. Weights are read from one place after
// the other of a large matrix, so that no cache holds them.
#include "ops/linear/linear_tuning.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"

namespace tandem::ops {
namespace {

constexpr uint32_t dispatches = 32, repetitions = 4;
constexpr double warm_up_ms = 250;  // until the clocks of an idle GPU are up
constexpr uint32_t most_busy = 4096;

uint64_t align(uint64_t bytes) {
  constexpr uint64_t step = aligned_floats * sizeof(float);
  return (bytes + step - 1) / step * step;
}

// Buffers that are large enough for every product; x is all zeros, which is as fast as any other.
struct Rows {
  gpu::Buffer x, times, y, step_one, step_few;
  uint32_t few_rows = 0;

  static Result<Rows> make(gpu::Device& device, std::span<const Linear> products,
                           uint32_t few_rows) {
    uint64_t columns = 0, outputs = 0;
    for (const Linear& op : products) {
      columns = std::max<uint64_t>(columns, op.weights.columns);
      outputs = std::max<uint64_t>(outputs, op.weights.parts.front().rows);
    }
    Rows rows{.few_rows = few_rows};
    TRY_ASSIGN(rows.x, device.make_buffer(few_rows * columns * sizeof(float), "tuning"));
    TRY_ASSIGN(rows.times, device.make_buffer(few_rows * outputs * sizeof(float), "tuning"));
    TRY_ASSIGN(rows.y, device.make_buffer(few_rows * outputs * sizeof(float), "tuning"));
    TRY_ASSIGN(rows.step_one, make_step(device, 1));
    TRY_ASSIGN(rows.step_few, make_step(device, few_rows));
    return rows;
  }

  static Result<gpu::Buffer> make_step(gpu::Device& device, uint32_t count) {
    TRY_ASSIGN(gpu::Buffer buffer, device.make_buffer(sizeof(Step), "tuning"));
    const Step step{.rows = count};
    TRY(device.write(buffer.view(), std::as_bytes(std::span(&step, 1))));
    return buffer;
  }

  // The product by the route `one` or `few`, with these weights and buffers.
  Linear bind(Linear op, RowRoute route, const MatrixPart& part) const {
    op.weights.rows = part.rows;
    op.weights.parts = {part};
    op.rows = route;
    op.few_rows = few_rows;
    op.max_rows = route == RowRoute::one ? 1 : few_rows;
    op.step = route == RowRoute::one ? step_one.view() : step_few.view();
    op.x = x.view();
    op.times = times.view();
    op.y = y.view();
    return op;
  }
};

// Places of a large matrix whose bytes stand for a smaller one of the same type.
class Places {
 public:
  Places(const Linear& op, const MatrixPart& large) : large_(large) {
    const std::vector<spec::PlaneLayout> planes = spec::planes(op.weights.type, op.weights.columns);
    rows_ = op.weights.parts.front().rows;
    values_ = (rows_ * planes[0].bytes_per_row + 3) / 4 * 4;
    count_ = large.values.bytes / align(values_);
    if (planes.size() > 1) {
      scales_ = (rows_ * planes[1].bytes_per_row + 3) / 4 * 4;
      count_ = std::min(count_, large.scales.bytes / align(scales_));
    }
    count_ = std::max<uint64_t>(count_, 1);
  }

  MatrixPart operator[](uint64_t index) const {
    const uint64_t place = index % count_;
    MatrixPart part{0, rows_, large_.values.part(place * align(values_), values_), {}};
    if (scales_ > 0) part.scales = large_.scales.part(place * align(scales_), scales_);
    return part;
  }

 private:
  MatrixPart large_;
  uint32_t rows_ = 0;
  uint64_t values_ = 0, scales_ = 0, count_ = 0;  // bytes of the planes; places
};

// Times lists behind work that keeps the GPU busy until all is submitted.
class Clock {
 public:
  static Result<Clock> make(gpu::Device& device, const Rows& rows, const Linear& largest) {
    Clock clock(device);
    const Linear op = rows.bind(largest, RowRoute::one, largest.weights.parts.front());
    TRY(ops::record(clock.busy_, op));
    Linear small = op;
    small.weights = op.weights.first_rows(aligned_floats);
    TRY(ops::record(clock.mark_, small));
    return clock;
  }

  Result<void> warm_up() {
    for (const double start = now_ms(); now_ms() < start + warm_up_ms;) {
      TRY(submit(busy_, times_busy_));
      TRY_ASSIGN(const gpu::Readback done, mark());
      TRY(device_.wait(done));
    }
    return {};
  }

  // Microseconds.
  Result<double> time(const gpu::CommandList& list) {
    for (;; times_busy_ *= 2) {
      TRY_ASSIGN(const gpu::Readback begin, mark());
      TRY(submit(busy_, times_busy_));
      const double submitting = now_ms();
      TRY_ASSIGN(const gpu::Readback before, mark());
      TRY(submit(list, 1));
      TRY_ASSIGN(const gpu::Readback end, mark());
      const double submitting_us = 1e3 * (now_ms() - submitting);
      TRY(device_.wait(end));
      TRY_ASSIGN(const double busy_us, between(begin, before));
      if (busy_us < submitting_us && times_busy_ < most_busy) continue;
      return between(before, end);
    }
  }

 private:
  explicit Clock(gpu::Device& device) : device_(device), busy_(device), mark_(device) {}

  Result<void> submit(const gpu::CommandList& list, uint32_t times) {
    gpu::Submission submission;
    submission.items.assign(times, {&list, {}});
    TRY(device_.submit(submission));
    return {};
  }
  Result<gpu::Readback> mark() {
    gpu::Submission submission{.items = {}, .read_back = {}, .passes = gpu::Passes::timed};
    submission.items.push_back({&mark_, {}});
    return device_.submit(submission);
  }
  Result<double> between(const gpu::Readback& from, const gpu::Readback& to) {
    TRY(device_.wait(from));
    TRY_ASSIGN(const std::vector<gpu::DispatchTime> first, from.times());
    TRY_ASSIGN(const std::vector<gpu::DispatchTime> last, to.times());
    return (static_cast<double>(last[0].begin_ns) - static_cast<double>(first[0].end_ns)) / 1e3;
  }

  gpu::Device& device_;
  gpu::CommandList busy_, mark_;
  uint32_t times_busy_ = 1;
};

// A product, of `op` or of one that keeps it company.
struct Product {
  Linear op;
  Places places;
};

// The search for one product's cut.
class Trial {
 public:
  Trial(gpu::Device& device, const Rows& rows, const Product& product, std::vector<Product> company)
      : device_(device),
        rows_(rows),
        product_(product),
        company_(std::move(company)),
        search_(product.op, device.info()) {}

  bool done() const { return search_.candidates().empty(); }
  std::pair<std::string, TunedProduct> result() const {
    return {shape(product_.op), search_.result()};
  }

  // Has the candidates' kernels compiled.
  Result<void> record() {
    if (done()) return {};
    TRY(add_list(nullptr, RowRoute::one));
    for (const Tiling& tiling : search_.candidates()) {
      TRY(add_list(&tiling, RowRoute::one));
      if (search_.times_few()) TRY(add_list(&tiling, RowRoute::few));
    }
    return {};
  }

  Result<void> run(Clock& clock) {
    if (done()) return {};
    std::vector<double> least(lists_.size(), 1e30);
    for (uint32_t i = 0; i < repetitions; ++i) {
      for (size_t list = 0; list < lists_.size(); ++list) {
        TRY_ASSIGN(const double us, clock.time(lists_[list]));
        least[list] = std::min(least[list], us);
      }
    }
    lists_.clear();
    const auto of_product = [&](size_t list) {
      return std::max(0.0, least[list] - least[0]) / dispatches;
    };
    std::vector<ProductTime> times;
    for (size_t list = 1; list < least.size(); ++list) {
      times.push_back({.one = of_product(list)});
      if (search_.times_few()) times.back().few = of_product(++list);
    }
    search_.take(times);
    return {};
  }

 private:
  // The product, cut so, and the others in turn; without a cut the others alone.
  Result<void> add_list(const Tiling* tiling, RowRoute route) {
    gpu::CommandList list(device_);
    for (uint32_t i = 0; i < dispatches; ++i) {
      if (tiling != nullptr) {
        Linear op = rows_.bind(product_.op, route, product_.places[place_++]);
        cut(op, *tiling);
        TRY(ops::record(list, op));
      }
      const Product& other = company_[i % company_.size()];
      TRY(ops::record(list, rows_.bind(other.op, RowRoute::one, other.places[place_++])));
    }
    lists_.push_back(std::move(list));
    return {};
  }

  gpu::Device& device_;
  const Rows& rows_;
  Product product_;
  std::vector<Product> company_;
  TilingSearch search_;
  uint64_t place_ = 0;
  std::vector<gpu::CommandList> lists_;  // the company's, then of each candidate one or two
};

// The one with the largest matrix, of the type if one is given.
const Linear& largest(std::span<const Linear> products,
                      std::optional<spec::WeightType> type = std::nullopt) {
  const auto bytes = [&](const Linear& op) {
    return type && op.weights.type != *type ? 0 : op.weights.parts.front().values.bytes;
  };
  return *std::max_element(products.begin(), products.end(),
                           [&](const Linear& a, const Linear& b) { return bytes(a) < bytes(b); });
}

}  // namespace

Result<TunedProducts> tune(gpu::Device& device, std::span<const Linear> products,
                           uint32_t few_rows) {
  TRY_ASSIGN(const Rows rows, Rows::make(device, products, few_rows));
  TRY_ASSIGN(Clock clock, Clock::make(device, rows, largest(products)));
  std::vector<Product> all;
  for (const Linear& op : products) {
    all.push_back({op, Places(op, largest(products, op.weights.type).weights.parts.front())});
  }
  std::vector<Trial> trials;
  for (const Product& product : all) {
    std::vector<Product> company;
    for (const Product& other : all) {
      // The largest would take most of the time.
      const bool is_large = shape(other.op) == shape(largest(products));
      if (shape(other.op) != shape(product.op) && !is_large) company.push_back(other);
    }
    if (company.empty()) company.push_back(product);
    trials.emplace_back(device, rows, product, std::move(company));
  }
  // In steps, so that the kernels of all trials are compiled side by side.
  const auto goes_on = [](const Trial& trial) { return !trial.done(); };
  while (std::any_of(trials.begin(), trials.end(), goes_on)) {
    for (Trial& trial : trials) TRY(trial.record());
    TRY(device.finish_kernels());
    TRY(clock.warm_up());
    for (Trial& trial : trials) TRY(trial.run(clock));
  }
  TunedProducts tuned;
  for (const Trial& trial : trials) tuned.insert(trial.result());
  return tuned;
}

}  // namespace tandem::ops
