// Route and recording of the matrix product.
#include "ops/linear/linear.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace tandem::ops {
namespace {

constexpr uint32_t rows_per_lane = 4;  // of linear_row.wgsl and its kin
constexpr uint32_t most_ahead = 4;     // pieces

uint32_t rows_per_output(Epilogue epilogue) { return epilogue == Epilogue::gelu_pair ? 2 : 1; }

uint64_t div_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// How many rows of x the route may touch.
uint32_t row_limit(const Linear& op) {
  switch (op.rows) {
    case RowRoute::one:
      return std::min(op.max_rows, 1u);
    case RowRoute::few:
      return std::min(op.max_rows, op.few_rows);
    case RowRoute::many:
      break;
  }
  return op.max_rows;
}

// Whether a lane of `one` and `few` takes whole units of 32 columns, which is faster where units
// keep a large GPU busy.
bool takes_units(const Linear& op) {
  const bool can = op.x_format == RowFormat::int8 ||
                   (op.x_format == RowFormat::lanes && op.weights.type == spec::WeightType::q4_0);
  return can && (op.weights.rows >= op.unit_rows || op.weights.columns >= op.unit_columns);
}

// As many lanes as a large GPU runs at once, but no more than have pieces.
uint32_t piece_lanes(uint64_t groups, uint32_t pieces) {
  constexpr uint32_t most_lanes = 256, fewest_lanes = 16;
  constexpr uint64_t in_flight = 200'000;
  const uint32_t most = std::min(std::bit_floor(pieces), most_lanes);
  uint32_t lanes = std::min(most, fewest_lanes);
  while (2 * lanes <= most && groups * 2 * lanes <= in_flight) {
    lanes *= 2;
  }
  return lanes;
}

RowTile row_tile(const Linear& op, const gpu::AdapterInfo& adapter) {
  if (op.tile.lines != 0) return op.tile;
  // Large tiles read the least, but each processor of a large GPU needs some.
  const auto tiles = [&](const RowTile& tile) {
    return div_up(op.max_rows, tile.lines * tile.x_rows) *
           div_up(op.weights.rows, 16 * tile.w_rows);
  };
  constexpr RowTile large{8, 8, 8, 1}, middle{8, 8, 4, 1}, small{4, 8, 4, 2};
  // To a software adapter, which has few, what invocations cost is their waiting for each other.
  const uint64_t enough = adapter.software ? 1 : 512;
  if (op.x_format != RowFormat::int8 && tiles(large) >= enough) return large;
  return tiles(middle) >= enough ? middle : small;
}

// Invocations of one of `one` and `few`: sums of four rows and what makes int8 do not fit 16 KiB of
// workgroup memory together.
uint32_t most_invocations(const Linear& op) {
  return op.x_format == RowFormat::int8 && op.few_rows > 3 ? 128 : 256;
}

bool is_power_of_two_up_to_256(uint32_t value) {
  return std::has_single_bit(value) && value <= 256;
}

Result<void> check(const Linear& op) {
  const Matrix& weights = op.weights;
  const std::vector<spec::PlaneLayout> planes = spec::planes(weights.type, weights.columns);
  const uint32_t group = rows_per_output(op.epilogue);
  const uint32_t column_step = weights.type == spec::WeightType::f16 ? 8 : 4;
  if (planes.empty() || weights.columns % column_step != 0 || weights.rows % group != 0) {
    return fail(ErrorCode::internal, "linear: no kernel for {} weights [{}, {}]",
                spec::name(weights.type), weights.rows, weights.columns);
  }
  if ((op.lanes != 0 && !is_power_of_two_up_to_256(op.lanes)) ||
      (op.workgroup != 0 && !is_power_of_two_up_to_256(op.workgroup)) ||
      (op.workgroup != 0 && op.lanes > op.workgroup)) {
    return fail(ErrorCode::internal,
                "linear: {} lanes in workgroups of {} are no powers of two up to 256", op.lanes,
                op.workgroup);
  }
  if (std::max(op.lanes, op.workgroup) > most_invocations(op)) {
    return fail(ErrorCode::internal, "linear: {} invocations are more than {}",
                std::max(op.lanes, op.workgroup), most_invocations(op));
  }
  if (op.ahead > most_ahead) {
    return fail(ErrorCode::internal, "linear: {} pieces ahead are more than {}", op.ahead,
                most_ahead);
  }
  if (op.x_format != RowFormat::columns && !has_units(weights.columns)) {
    return fail(ErrorCode::internal, "linear: x of {} columns has no units", weights.columns);
  }
  if ((op.x_format == RowFormat::lanes && op.rows == RowRoute::many) ||
      (op.x_format == RowFormat::int8 && !takes_int8(weights.type)) || !writes(op, op.y_format)) {
    return fail(ErrorCode::internal, "linear: no kernel for x or y in this format");
  }
  if (op.tile.lines != 0 && op.x_format == RowFormat::int8 &&
      (op.tile.x_rows != 8 || op.tile.w_rows != 4 || op.tile.lines * op.tile.teams > 8)) {
    return fail(ErrorCode::internal, "linear: no kernel for this tile of int8");
  }
  if (op.few_rows < 2 || op.few_rows > 4) {
    return fail(ErrorCode::internal, "linear: few rows are 2 to 4, not {}", op.few_rows);
  }
  if (op.epilogue == Epilogue::softcap && !(op.softcap > 0)) {
    return fail(ErrorCode::internal, "linear: a softcap of {} is not positive", op.softcap);
  }
  const uint64_t rows = row_limit(op);
  const uint64_t outputs = ops::outputs(op);
  TRY(gpu::check_indexable(rows * weights.columns));
  TRY(gpu::check_indexable(rows * outputs));
  TRY(check_size("linear", "x", op.x, rows * weights.columns * 4));
  TRY(check_size("linear", "y", op.y, rows * outputs * 4));
  if (op.epilogue == Epilogue::gelu_times) {
    TRY(check_size("linear", "times", op.times, rows * outputs * 4));
  }
  for (const MatrixPart& part : weights.parts) {
    if (part.first_row % group != 0 || part.rows % group != 0 ||
        uint64_t{part.first_row} + part.rows > weights.rows) {
      return fail(ErrorCode::internal, "linear: rows {} to {} are no part of a matrix of {} rows",
                  part.first_row, uint64_t{part.first_row} + part.rows, weights.rows);
    }
    TRY(gpu::check_indexable(uint64_t{part.rows} * weights.columns));
    TRY(check_size("linear", "weights", part.values, part.rows * planes[0].bytes_per_row));
    if (planes.size() > 1) {
      TRY(check_size("linear", "scales", part.scales, part.rows * planes[1].bytes_per_row));
    }
  }
  return {};
}

// Outputs are bound from here on: where the part begins, as near as bindings may; but column by
// column they lie elsewhere.
uint64_t first_output(const Linear& op, const MatrixPart& part) {
  if (op.y_format != RowFormat::columns) return 0;
  return part.first_row / rows_per_output(op.epilogue) / aligned_floats * aligned_floats;
}

// Weights once, x once, and for each row its outputs and what they are multiplied with.
gpu::Traffic traffic(const Linear& op, uint32_t part_rows) {
  gpu::Traffic traffic;
  for (const spec::PlaneLayout& plane : spec::planes(op.weights.type, op.weights.columns)) {
    traffic.fixed += part_rows * plane.bytes_per_row;
  }
  const uint64_t outputs = part_rows / rows_per_output(op.epilogue);
  traffic.per_row = row_bytes(op.x_format, op.weights.columns) +
                    row_bytes(op.y_format, static_cast<uint32_t>(outputs)) +
                    (op.epilogue == Epilogue::gelu_times ? outputs * sizeof(float) : 0);
  return traffic;
}

}  // namespace

std::string_view name(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return "none";
    case Epilogue::gelu_pair:
      return "gelu_pair";
    case Epilogue::gelu_times:
      return "gelu_times";
    case Epilogue::softcap:
      return "softcap";
  }
  return "";
}

uint32_t outputs(const Linear& op) { return op.weights.rows / rows_per_output(op.epilogue); }

bool takes_int8(spec::WeightType weights) {
  return weights == spec::WeightType::q4_0 || weights == spec::WeightType::q8_0;
}

bool writes(const Linear& op, RowFormat format) {
  if (format == RowFormat::columns) return true;
  return op.epilogue == Epilogue::gelu_pair && op.rows != RowRoute::many &&
         (op.x_format == RowFormat::int8) == (format == RowFormat::int8) && has_units(outputs(op));
}

bool is_possible(const Tiling& tiling) {
  return is_power_of_two_up_to_256(tiling.lanes) && is_power_of_two_up_to_256(tiling.workgroup) &&
         tiling.lanes <= tiling.workgroup && tiling.ahead >= 1 && tiling.ahead <= most_ahead;
}

uint32_t row_pieces(const Linear& op) {
  return static_cast<uint32_t>(div_up(op.weights.columns, takes_units(op) ? 32 : 8));
}

// Measured on an H200 (docs/operators.md).
Tiling tiling(const Linear& op, const gpu::AdapterInfo& adapter) {
  const bool units = takes_units(op);
  const bool very_many_rows = op.weights.rows >= 1 << 16;
  const bool many_columns = op.weights.columns >= op.unit_columns;
  const uint32_t most_unit_lanes = very_many_rows ? 8 : many_columns ? 128 : 16;
  const uint32_t ahead = !units ? most_ahead : very_many_rows ? 2 : 1;
  const uint32_t pieces = row_pieces(op);
  Tiling tiling{.units = units};
  // A software adapter runs one invocation after another: more lanes only cost.
  if (!adapter.software) {
    tiling.lanes = units ? std::min(std::bit_floor(pieces), most_unit_lanes)
                         : piece_lanes(div_up(op.weights.rows, rows_per_lane), pieces);
  }
  tiling.lanes = std::min(tiling.lanes, most_invocations(op));
  if (op.lanes != 0) tiling.lanes = op.lanes;
  // As int8, whole units of outputs, of which an invocation has a quad at most.
  const bool y_int8 = op.y_format == RowFormat::int8;
  if (y_int8) tiling.lanes = std::clamp(tiling.lanes, 2u, most_invocations(op) / 16);
  const uint32_t turns = (pieces + tiling.lanes - 1) / tiling.lanes;
  tiling.ahead = std::min(turns, ahead);
  while (turns % tiling.ahead != 0) --tiling.ahead;
  if (op.ahead != 0) tiling.ahead = op.ahead;
  tiling.workgroup = op.workgroup != 0 ? op.workgroup : std::max(64u, tiling.lanes);
  if (y_int8) tiling.workgroup = std::max(tiling.workgroup, 16 * tiling.lanes);
  return tiling;
}

void cut(Linear& op, const Tiling& tiling) {
  op.lanes = tiling.lanes;
  op.workgroup = tiling.workgroup;
  op.ahead = tiling.ahead;
  op.unit_rows = tiling.units ? 0 : UINT32_MAX;
  if (!tiling.units) op.unit_columns = UINT32_MAX;
}

std::string shape(const Linear& op) {
  const bool plain = op.y_format == RowFormat::columns;
  return fmt::format("{} {}x{} {} {}{}{}", spec::name(op.weights.type), op.weights.rows,
                     op.weights.columns, name(op.epilogue), name(op.x_format), plain ? "" : " to ",
                     plain ? "" : name(op.y_format));
}

Route linear_route(const Linear& op, const MatrixPart& part, const gpu::AdapterInfo& adapter) {
  const uint32_t columns = op.weights.columns;
  const uint32_t group = rows_per_output(op.epilogue);
  std::vector<gpu::Constant> constants = {
      {"EPILOGUE", double(op.epilogue)},
      {"ROWS", double(part.rows)},
      {"COLUMNS", double(columns)},
      {"Y_STRIDE", double(op.weights.rows / group)},
      {"Y_OFFSET", double(part.first_row / group - first_output(op, part))},
      {"SOFTCAP", op.epilogue == Epilogue::softcap ? op.softcap : 1},
  };
  const gpu::Constant type{"TYPE", double(op.weights.type)};
  if (op.rows == RowRoute::many) {
    const auto [lines, x_rows, w_rows, teams] = row_tile(op, adapter);
    const bool int8 = op.x_format == RowFormat::int8;
    constants.insert(constants.end(), {type, {"LINES", double(lines)}, {"TEAMS", double(teams)}});
    if (!int8) {
      constants.insert(constants.end(), {{"X_ROWS", double(x_rows)}, {"W_ROWS", double(w_rows)}});
    }
    return {int8 ? "linear_tiled_int8" : "linear_tiled",
            std::move(constants),
            {div_up(part.rows, uint64_t{16} * w_rows), lines * x_rows, 0},
            traffic(op, part.rows)};
  }
  const Tiling taken = tiling(op, adapter);
  constants.insert(constants.end(), {{"M", op.rows == RowRoute::one ? 1.0 : op.few_rows},
                                     {"LANES", double(taken.lanes)},
                                     {"WORKGROUP", double(taken.workgroup)},
                                     {"AHEAD", double(taken.ahead)}});
  const bool int8 = op.x_format == RowFormat::int8;
  const double y_differs = op.y_format == RowFormat::columns ? 0 : 1;
  constants.insert(
      constants.end(),
      {type, {"WORDS", taken.units ? 4.0 : 1.0}, {int8 ? "Y_INT8" : "Y_IN_LANES", y_differs}});
  if (!int8) constants.push_back({"X_IN_LANES", op.x_format == RowFormat::lanes ? 1.0 : 0.0});
  return {int8 ? "linear_int8" : "linear_row",
          std::move(constants),
          {div_up(part.rows, rows_per_lane * taken.workgroup / taken.lanes), 0, 0},
          traffic(op, part.rows)};
}

Result<void> record(gpu::CommandList& commands, const Linear& op) {
  TRY(check(op));
  for (const MatrixPart& part : op.weights.parts) {
    const uint64_t first = first_output(op, part) * sizeof(float);
    auto from_first = [&](gpu::View view) { return view.part(first, view.bytes - first); };
    const bool times = op.epilogue == Epilogue::gelu_times;
    TRY(dispatch(commands, linear_route(op, part, commands.device().info()),
                 {gpu::uniform(op.step), gpu::read(part.values), gpu::read(part.bound_scales()),
                  gpu::read(op.x), gpu::read(times ? from_first(op.times) : op.x),
                  gpu::read_write(from_first(op.y))}));
  }
  return {};
}

}  // namespace tandem::ops
