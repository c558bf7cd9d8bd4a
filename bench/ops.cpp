// How long operators of decode take at a model's shapes, with kernels cut in different ways:
//   bench_ops [ADAPTER] [FILTER] [checks]    checks: with the library's bounds checks
// Each figure is the time of one dispatch among many in one pass, as decode runs them. Weights are
// read from copies in turn, so that no cache holds them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/add_norm/add_norm.h"
#include "ops/attention/attention.h"
#include "ops/linear/linear.h"

namespace {

using namespace tandem;

constexpr uint32_t repetitions = 5;
constexpr uint64_t spread_bytes = 256 << 20;  // of copies of a matrix

template <class T>
T value(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}
void succeed(const Result<void>& result) {
  if (result) return;
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

// How a matrix is cut: pieces of 8 columns, whole units of 32, or units of int8.
enum class Kernel { pieces, units, int8_pieces, int8_units };
struct Cut {
  Kernel kernel;
  uint32_t lanes;
  uint32_t ahead;

  const char* name() const {
    constexpr const char* names[] = {"pieces", "units ", "pieces int8", "units  int8"};
    return names[static_cast<int>(kernel)];
  }
  bool is_int8() const { return kernel >= Kernel::int8_pieces; }
  bool in_units() const { return kernel == Kernel::units || kernel == Kernel::int8_units; }
  uint32_t columns() const { return in_units() ? 32 : 8; }
};
constexpr Cut cuts[] = {
    {Kernel::pieces, 16, 4},       {Kernel::pieces, 32, 1},       {Kernel::pieces, 32, 3},
    {Kernel::pieces, 64, 1},       {Kernel::pieces, 64, 3},       {Kernel::pieces, 128, 1},
    {Kernel::pieces, 128, 2},      {Kernel::pieces, 128, 3},      {Kernel::pieces, 256, 1},
    {Kernel::pieces, 256, 2},      {Kernel::pieces, 256, 3},      {Kernel::units, 8, 1},
    {Kernel::units, 8, 2},         {Kernel::units, 8, 3},         {Kernel::units, 16, 1},
    {Kernel::units, 16, 3},        {Kernel::units, 32, 1},        {Kernel::units, 64, 1},
    {Kernel::units, 128, 1},       {Kernel::int8_pieces, 16, 2},  {Kernel::int8_pieces, 16, 4},
    {Kernel::int8_pieces, 32, 2},  {Kernel::int8_pieces, 32, 3},  {Kernel::int8_pieces, 32, 4},
    {Kernel::int8_pieces, 64, 1},  {Kernel::int8_pieces, 64, 2},  {Kernel::int8_pieces, 64, 3},
    {Kernel::int8_pieces, 64, 4},  {Kernel::int8_pieces, 128, 1}, {Kernel::int8_pieces, 128, 2},
    {Kernel::int8_pieces, 128, 3}, {Kernel::int8_pieces, 256, 1}, {Kernel::int8_pieces, 256, 2},
    {Kernel::int8_pieces, 256, 3}, {Kernel::int8_units, 8, 1},    {Kernel::int8_units, 8, 2},
    {Kernel::int8_units, 8, 3},    {Kernel::int8_units, 16, 1},   {Kernel::int8_units, 16, 2},
    {Kernel::int8_units, 16, 3},   {Kernel::int8_units, 32, 1},   {Kernel::int8_units, 32, 2},
    {Kernel::int8_units, 64, 1},   {Kernel::int8_units, 128, 1},  {Kernel::int8_units, 128, 3}};
// Of many rows.
constexpr ops::RowTile row_tiles[] = {{8, 8, 4, 1}, {8, 8, 4, 2}, {4, 8, 4, 1},
                                      {4, 8, 4, 2}, {4, 4, 4, 1}, {8, 8, 8, 1}};

class Bench {
 public:
  Bench(const std::string& adapter, bool checks, std::string filter)
      : device_(value(gpu::Device::open({.adapter = adapter, .bounds_checks = checks}))),
        filter_(std::move(filter)) {}

  gpu::Device& device() { return *device_; }
  bool wants(std::string_view name) const { return name.find(filter_) != std::string_view::npos; }

  gpu::View buffer(uint64_t bytes) {
    buffers_.push_back(value(device_->make_buffer(bytes, "bench")));
    return buffers_.back().view();
  }
  // The step of `rows` rows at `position`.
  gpu::View step(uint32_t rows, uint32_t position) {
    const gpu::View view = buffer(sizeof(ops::Step));
    const ops::Step step{.position = position, .rows = rows};
    succeed(device_->write(view, std::as_bytes(std::span(&step, 1))));
    return view;
  }
  void clear() { buffers_.clear(); }

  gpu::Readback submit(
      const std::vector<std::pair<std::reference_wrapper<const gpu::CommandList>, gpu::Extent>>&
          lists,
      gpu::Passes passes) {
    gpu::Submission submission{.items = {}, .read_back = {}, .passes = passes};
    for (const auto& [list, extent] : lists) submission.items.push_back({&list.get(), extent});
    return value(device_->submit(submission));
  }

  // Microseconds of one of the list's dispatches: the least of some runs. Work ahead of it keeps
  // the GPU busy until all is submitted; the times are the GPU's own, of marks before and after.
  double time(const gpu::CommandList& commands, gpu::Extent extent, uint32_t dispatches = 200) {
    const uint32_t lists = 1 + dispatches / commands.dispatch_count();
    double best = 1e30;
    // Compiling leaves the GPU idle, and its clocks low.
    succeed(device_->finish_kernels());
    for (uint32_t i = 0; i < 8; ++i)
      submit({{std::cref(*ahead_), {}}}, gpu::Passes::one_per_submission);
    for (uint32_t i = 0; i < repetitions; ++i) {
      submit({{std::cref(*ahead_), {}}}, gpu::Passes::one_per_submission);
      const gpu::Readback begin = submit({{std::cref(*mark_), {}}}, gpu::Passes::timed);
      submit(std::vector(lists, std::pair(std::cref(commands), extent)),
             gpu::Passes::one_per_submission);
      const gpu::Readback end = submit({{std::cref(*mark_), {}}}, gpu::Passes::timed);
      succeed(device_->wait(end));
      const uint64_t took = value(end.times())[0].begin_ns - value(begin.times())[0].end_ns;
      best = std::min(best, double(took) / 1e3 / lists / commands.dispatch_count());
    }
    return best;
  }
  void prepare() {
    kept_.push_back(value(device_->make_buffer(uint64_t{262144} * 1536 / 2, "ahead")));
    kept_.push_back(value(device_->make_buffer(uint64_t{262144} * 1536 / 16, "ahead")));
    kept_.push_back(value(device_->make_buffer(1 << 20, "ahead")));
    kept_.push_back(value(device_->make_buffer(1 << 20, "ahead")));
    kept_.push_back(value(device_->make_buffer(sizeof(ops::Step), "ahead")));
    const ops::Step step{.rows = 1};
    succeed(device_->write(kept_[4].view(), std::as_bytes(std::span(&step, 1))));
    ops::Linear op{.weights = {spec::WeightType::q4_0,
                               262144,
                               1536,
                               {{0, 262144, kept_[0].view(), kept_[1].view()}}},
                   .step = kept_[4].view(),
                   .x = kept_[2].view(),
                   .y = kept_[3].view(),
                   .max_rows = 1};
    ahead_.emplace(*device_);
    for (int i = 0; i < 20; ++i) succeed(ops::record(*ahead_, op));
    op.weights = op.weights.first_rows(64);
    mark_.emplace(*device_);
    succeed(ops::record(*mark_, op));
    // Until the clocks are up.
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(300)) {
      succeed(device_->wait(submit({{std::cref(*ahead_), {}}}, gpu::Passes::timed)));
    }
  }

  double linear(uint32_t rows, uint32_t columns, ops::Epilogue epilogue, uint32_t m,
                const Cut& cut) {
    clear();
    const uint64_t bytes = uint64_t{rows} * columns / 2;
    const auto copies = static_cast<uint32_t>(std::clamp<uint64_t>(spread_bytes / bytes, 1, 64));
    gpu::CommandList commands(*device_);
    const gpu::View x = buffer(uint64_t{4} * m * columns);
    const gpu::View times = buffer(uint64_t{4} * m * rows);
    const gpu::View y = buffer(uint64_t{4} * m * rows);
    const gpu::View at = step(m, 0);
    for (uint32_t i = 0; i < copies; ++i) {
      ops::Linear op{.weights = {spec::WeightType::q4_0,
                                 rows,
                                 columns,
                                 {{0, rows, buffer(bytes), buffer(bytes / 8)}}},
                     .epilogue = epilogue,
                     .rows = m == 1 ? ops::RowRoute::one : ops::RowRoute::few,
                     .softcap = 30,
                     .few_rows = std::max(m, 2u),
                     .lanes = cut.lanes,
                     .ahead = cut.ahead,
                     .unit_rows = cut.in_units() ? 0 : UINT32_MAX,
                     .step = at,
                     .x = x,
                     .x_format = cut.is_int8() ? ops::RowFormat::int8 : ops::RowFormat::lanes,
                     .times = times,
                     .y = y,
                     .max_rows = m};
      succeed(ops::record(commands, op));
    }
    return time(commands, {.rows = m});
  }

  double tiled(uint32_t rows, uint32_t columns, ops::Epilogue epilogue, uint32_t m,
               ops::RowFormat x_format, const ops::RowTile& tile) {
    clear();
    const uint64_t bytes = uint64_t{rows} * columns / 2;
    gpu::CommandList commands(*device_);
    const ops::MatrixPart part{0, rows, buffer(bytes), buffer(bytes / 8)};
    ops::Linear op;
    op.weights = {spec::WeightType::q4_0, rows, columns, {part}};
    op.epilogue = epilogue;
    op.rows = ops::RowRoute::many;
    op.tile = tile;
    op.step = step(m, 0);
    op.x = buffer(uint64_t{4} * m * columns);
    op.x_format = x_format;
    op.times = buffer(uint64_t{4} * m * rows);
    op.y = buffer(uint64_t{4} * m * rows);
    op.max_rows = m;
    for (uint32_t i = 0; i < 4; ++i) succeed(ops::record(commands, op));
    return time(commands, {.rows = m}, 8);
  }

  // A dispatch that finds nothing to do.
  double nothing() {
    clear();
    gpu::CommandList commands(*device_);
    const gpu::View data = buffer(6144);
    const ops::AddNorm op{.columns = 1536,
                          .epsilon = 1e-6f,
                          .step = step(0, 0),
                          .x = data,
                          .weight = data,
                          .scalar = {},
                          .h = buffer(6144),
                          .next_weight = data,
                          .y = buffer(6144),
                          .max_rows = 1};
    for (uint32_t i = 0; i < 100; ++i) succeed(ops::record(commands, op));
    return time(commands, {.rows = 1});
  }

  // Each layer has keys and values of its own, as many as no cache holds.
  double attention(uint32_t heads, uint32_t head_dim, uint32_t window, uint32_t position,
                   uint32_t m, uint32_t queries, uint32_t tile) {
    clear();
    const uint32_t slots = window == 0 ? 8960 : window + 64;
    const uint32_t layers = window == 0 ? 8 : 64;
    gpu::CommandList commands(*device_);
    ops::Attention op{.heads = heads,
                      .kv_heads = 1,
                      .head_dim = head_dim,
                      .window = window,
                      .positions = 8960,
                      .queries = queries,
                      .tile = tile,
                      .step = step(m, position),
                      .q = buffer(uint64_t{4} * m * heads * head_dim),
                      .kv = {},
                      .y = buffer(uint64_t{4} * m * heads * head_dim),
                      .max_rows = m};
    op.partials = buffer(ops::attention_partials_bytes(op));
    for (uint32_t i = 0; i < layers; ++i) {
      op.kv = {ops::KvType::f16, slots, buffer(uint64_t{2} * slots * head_dim),
               buffer(uint64_t{2} * slots * head_dim)};
      succeed(ops::record(commands, op));
    }
    const double dispatches = double(commands.dispatch_count()) / layers;
    return dispatches * time(commands, {.rows = m, .positions = position + m});
  }

  // Of the last rows of a chunk.
  double attention_chunk(uint32_t head_dim, uint32_t window, uint32_t position) {
    clear();
    constexpr uint32_t heads = 8, m = 512;
    const uint32_t slots = window == 0 ? 8960 : window + m + 1;
    gpu::CommandList commands(*device_);
    const ops::Attention op{.heads = heads,
                            .kv_heads = 1,
                            .head_dim = head_dim,
                            .window = window,
                            .positions = 8960,
                            .route = ops::AttentionRoute::whole,
                            .step = step(m, position),
                            .q = buffer(uint64_t{4} * m * heads * head_dim),
                            .rope = {},
                            .kv = {ops::KvType::f16, slots, buffer(uint64_t{2} * slots * head_dim),
                                   buffer(uint64_t{2} * slots * head_dim)},
                            .partials = {},
                            .y = buffer(uint64_t{4} * m * heads * head_dim),
                            .max_rows = m};
    for (uint32_t i = 0; i < 4; ++i) succeed(ops::record(commands, op));
    return time(commands, {.rows = m, .positions = position + m}, 8);
  }

  double add_norm(uint32_t columns, uint32_t m) {
    clear();
    gpu::CommandList commands(*device_);
    const uint64_t bytes = uint64_t{4} * m * columns;
    const ops::AddNorm op{.columns = columns,
                          .epsilon = 1e-6f,
                          .step = step(m, 0),
                          .x = buffer(bytes),
                          .weight = buffer(uint64_t{4} * columns),
                          .scalar = {},
                          .h = buffer(bytes),
                          .next_weight = buffer(uint64_t{4} * columns),
                          .y = buffer(bytes),
                          .max_rows = m};
    for (uint32_t i = 0; i < 4; ++i) succeed(ops::record(commands, op));
    return time(commands, {.rows = m});
  }

 private:
  std::unique_ptr<gpu::Device> device_;
  std::string filter_;
  std::vector<gpu::Buffer> buffers_;
  std::vector<gpu::Buffer> kept_;
  std::optional<gpu::CommandList> ahead_;
  std::optional<gpu::CommandList> mark_;
};

struct Shape {
  uint32_t rows;
  uint32_t columns;
  ops::Epilogue epilogue;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string adapter = argc > 1 ? argv[1] : "";
  const std::string filter = argc > 2 ? argv[2] : "";
  const bool checks = argc > 3;
  Bench bench(adapter, checks, filter);
  fmt::print("{}\n", bench.device().info().name);
  bench.prepare();
  const Shape shapes[] = {
      {2560, 1536, ops::Epilogue::none},       {2048, 1536, ops::Epilogue::none},
      {5120, 1536, ops::Epilogue::none},       {1536, 2048, ops::Epilogue::none},
      {1536, 4096, ops::Epilogue::none},       {12288, 1536, ops::Epilogue::gelu_pair},
      {24576, 1536, ops::Epilogue::gelu_pair}, {1536, 6144, ops::Epilogue::none},
      {1536, 12288, ops::Epilogue::none},      {256, 1536, ops::Epilogue::gelu_times},
      {1536, 256, ops::Epilogue::none},        {8960, 1536, ops::Epilogue::none},
      {262144, 1536, ops::Epilogue::softcap}};
  for (const auto& [rows, columns, epilogue] : shapes) {
    const std::string name = fmt::format("linear {}x{} {}", rows, columns, ops::name(epilogue));
    if (!bench.wants(name)) continue;
    for (const Cut& cut : cuts) {
      const uint32_t pieces = columns / cut.columns();
      const uint32_t turns = (pieces + cut.lanes - 1) / cut.lanes;
      if (cut.lanes > pieces || turns > 12 || turns % cut.ahead != 0) continue;
      fmt::print("{:<34} {} lanes {:>3} ahead {}", name, cut.name(), cut.lanes, cut.ahead);
      for (uint32_t m : {1u, 3u}) {
        const double us = bench.linear(rows, columns, epilogue, m, cut);
        fmt::print("   m={} {:>8.2f} us {:>7.0f} GB/s", m, us,
                   rows * double(columns) * 0.5625 / us / 1e3);
      }
      fmt::print("\n");
      std::fflush(stdout);
    }
  }
  for (const auto& [rows, columns, epilogue] : shapes) {
    if (rows > 100'000) continue;
    for (ops::RowFormat x_format : {ops::RowFormat::columns, ops::RowFormat::int8}) {
      const bool int8 = x_format == ops::RowFormat::int8;
      const std::string name = fmt::format("tiled {} {}x{} {}", int8 ? "int8" : "f32", rows,
                                           columns, ops::name(epilogue));
      if (!bench.wants(name)) continue;
      for (const ops::RowTile& tile : row_tiles) {
        const bool of_int8 = tile.x_rows == 8 && tile.w_rows == 4 && tile.lines * tile.teams <= 8;
        if (int8 && !of_int8) continue;
        const double us = bench.tiled(rows, columns, epilogue, 512, x_format, tile);
        fmt::print("{:<34} {:>2} lines {}x{} {} teams  m=512 {:>8.1f} us {:>6.1f} TFLOPS\n", name,
                   tile.lines, tile.x_rows, tile.w_rows, tile.teams, us,
                   2.0 * 512 * rows * columns / us / 1e6);
        std::fflush(stdout);
      }
    }
  }
  if (bench.wants("attention")) {
    for (uint32_t tile : {32u, 64u}) {
      for (uint32_t queries : {1u, 2u, 4u}) {
        fmt::print("attention {} heads, {} keys:", queries, tile);
        for (uint32_t m : {1u, 3u}) {
          for (uint32_t position : {512u, 2048u, 8192u}) {
            fmt::print("  m={} at {}: {:.2f} us", m, position,
                       bench.attention(8, 512, 0, position, m, queries, tile));
          }
          fmt::print("  sliding: {:.2f} us", bench.attention(8, 256, 512, 2048, m, queries, tile));
        }
        fmt::print("\n");
        std::fflush(stdout);
      }
    }
  }
  if (bench.wants("chunk")) {
    for (uint32_t position : {0u, 2048u, 7680u}) {
      fmt::print("attention of 512 rows at {}: sliding {:.1f} us, full {:.1f} us\n", position,
                 bench.attention_chunk(256, 512, position),
                 bench.attention_chunk(512, 0, position));
    }
  }
  if (bench.wants("small")) {
    fmt::print("nothing: {:.2f} us\n", bench.nothing());
    for (uint32_t m : {1u, 3u})
      fmt::print("add_norm 1536, m={}: {:.2f} us\n", m, bench.add_norm(1536, m));
  }
}
