#include "artifact/load_plan.h"

#include <algorithm>

#include "artifact/shard_layout.h"
#include "base/error.h"

namespace tandem::artifact {
namespace {

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::malformed_artifact, "{}: {}", manifest_file,
              fmt::format(format, std::forward<Args>(args)...));
}

Result<void> check_bounds(const Manifest& manifest) {
  if (manifest.input_bound == 0) return refuse("input_bound: expected at least 1, found 0");
  if (manifest.context_bound == 0 || manifest.context_bound > manifest.config.max_positions) {
    return refuse("context_bound: expected 1 to {}, the config's max_position_embeddings, found {}",
                  manifest.config.max_positions, manifest.context_bound);
  }
  return {};
}

// The role of the shard that a tensor or plane must lie in.
std::string_view role_of(std::string_view name) {
  return spec::is_assistants(name) ? assistant_role : target_role;
}

bool is_in(const Shard& shard, View view) { return view == View::mtp || shard.role == target_role; }

Result<void> check_recipe(const Manifest& manifest, const std::vector<spec::Tensor>& registry) {
  if (manifest.recipe.vector != spec::WeightType::f32) {
    return refuse("recipe.vector: expected f32, found {}", name(manifest.recipe.vector));
  }
  for (const auto& [tensor, type] : manifest.recipe.overrides) {
    const auto row = std::find_if(registry.begin(), registry.end(),
                                  [&name = tensor](const auto& r) { return r.name == name; });
    if (row == registry.end())
      return refuse("recipe.overrides.{}: expected a tensor of the model, found none", tensor);
    if (type == manifest.recipe.of_class(row->tensor_class) ||
        !spec::may_be(row->tensor_class, type)) {
      return refuse("recipe.overrides.{}: {}, whose class is {}, cannot be overridden by {}",
                    tensor, name(row->tensor_class),
                    name(manifest.recipe.of_class(row->tensor_class)), name(type));
    }
  }
  return {};
}

Result<void> check_tensor(const Manifest& manifest, const spec::Tensor& row,
                          const TensorEntry& entry) {
  if (entry.name != row.name)
    return refuse("tensors: name: expected {}, found {}", row.name, entry.name);
  if (entry.rows != row.rows || entry.columns != row.columns) {
    return refuse("tensor {}: expected the shape [{}, {}], found [{}, {}]", row.name, row.rows,
                  row.columns, entry.rows, entry.columns);
  }
  if (entry.type != manifest.recipe.of(row)) {
    return refuse("tensor {}: expected the type {} by the recipe, found {}", row.name,
                  name(manifest.recipe.of(row)), name(entry.type));
  }
  const std::vector<spec::PlaneLayout> planes = spec::planes(entry.type, entry.columns);
  if (planes.empty() || !spec::may_be(row.tensor_class, entry.type))
    return refuse("tensor {}: type: expected one that holds a {} of {} columns, found {}", row.name,
                  name(row.tensor_class), row.columns, name(entry.type));
  if (entry.planes.size() != planes.size()) {
    return refuse("tensor {}: expected {} planes, found {}", row.name, planes.size(),
                  entry.planes.size());
  }
  for (size_t i = 0; i < planes.size(); ++i) {
    const Plane& plane = entry.planes[i];
    if (plane.name != planes[i].suffix) {
      return refuse("tensor {}: expected the plane {}, found {}", row.name, planes[i].suffix,
                    plane.name);
    }
    if (plane.shard >= manifest.shards.size()) {
      return refuse("tensor {}: plane {}: expected one of {} shards, found shard {}", row.name,
                    plane.name, manifest.shards.size(), plane.shard);
    }
    const Shard& shard = manifest.shards[plane.shard];
    if (shard.role != role_of(row.name)) {
      return refuse(
          "tensor {}: expected it in a shard of the role {}, found it in {} of the role {}",
          row.name, role_of(row.name), shard.file, shard.role);
    }
    if (plane.shard != entry.planes[0].shard)
      return refuse("tensor {}: expected its plane {} in shard {}, as the first, found it in {}",
                    row.name, plane.name, entry.planes[0].shard, plane.shard);
  }
  return {};
}

// The planes of each shard in the order of their offsets in the manifest.
std::vector<std::vector<SafetensorsEntry>> planes_by_shard(const Manifest& manifest) {
  std::vector<std::vector<SafetensorsEntry>> shards(manifest.shards.size());
  for (const TensorEntry& tensor : manifest.tensors) {
    const std::vector<spec::PlaneLayout> layouts = spec::planes(tensor.type, tensor.columns);
    for (size_t i = 0; i < layouts.size(); ++i) {
      SafetensorsEntry entry = plane_entry(tensor.name, layouts[i], tensor.rows);
      entry.offset = tensor.planes[i].offset;
      shards[tensor.planes[i].shard].push_back(std::move(entry));
    }
  }
  for (auto& planes : shards) {
    std::stable_sort(planes.begin(), planes.end(),
                     [](const auto& a, const auto& b) { return a.offset < b.offset; });
  }
  return shards;
}

// The layout that the manifest's planes must have, which is the one that tiles the shard.
Result<ShardLayout> check_shard(const Shard& shard, const std::vector<SafetensorsEntry>& planes) {
  if (planes.empty()) return refuse("shard {}: expected tensors, found none", shard.file);
  ShardLayout layout = lay_out_shard(planes);
  auto plane = planes.begin();
  for (const SafetensorsEntry& entry : layout.entries) {
    if (is_padding(entry)) continue;
    if (entry.offset != plane->offset) {
      return refuse(
          "shard {}: expected {} at byte {}, so that planes leave no gap and do not overlap, found "
          "it at {}",
          shard.file, entry.name, entry.offset, plane->offset);
    }
    ++plane;
  }
  if (layout.bytes != shard.bytes) {
    return refuse("shard {}: expected {} bytes for its planes, found {}", shard.file, layout.bytes,
                  shard.bytes);
  }
  const uint64_t pieces = (shard.bytes + piece_bytes - 1) / piece_bytes;
  if (shard.pieces.size() != pieces) {
    return refuse("shard {}: expected {} pieces, found {}", shard.file, pieces,
                  shard.pieces.size());
  }
  return layout;
}

uint32_t number_bytes(const SafetensorsEntry& plane) {
  return plane.dtype == "F16" ? 2 : plane.dtype == "F32" ? 4 : 0;
}

void append_pieces(LoadPlan& plan, const Shard& shard, uint32_t shard_index,
                   const ShardLayout& layout) {
  auto entry = layout.entries.begin();
  for (uint32_t index = 0; index < shard.pieces.size(); ++index) {
    Piece piece{shard_index, index, index * piece_bytes, 0, shard.pieces[index], {}};
    piece.bytes = std::min(piece_bytes, shard.bytes - piece.offset);
    const uint64_t piece_end = piece.offset + piece.bytes;
    // An entry that goes on in the next piece is met again there.
    for (; entry != layout.entries.end() && entry->offset < piece_end; ++entry) {
      const uint64_t begin = std::max(entry->offset, piece.offset);
      const uint64_t end = std::min(entry->offset + entry->bytes, piece_end);
      if (!is_padding(*entry) && begin < end) {
        piece.segments.push_back({entry->name, begin - piece.offset, begin - entry->offset,
                                  end - begin, number_bytes(*entry)});
      }
      if (entry->offset + entry->bytes > piece_end) break;
    }
    plan.pieces.push_back(std::move(piece));
  }
}

}  // namespace

Result<LoadPlan> make_load_plan(const Manifest& manifest, View view) {
  if (view == View::mtp && !manifest.mtp) {
    return fail(ErrorCode::not_found,
                "{}: the artifact has no view mtp; export the model with its assistant",
                manifest_file);
  }
  TRY(check_bounds(manifest));
  const std::vector<spec::Tensor> registry = artifact::registry(manifest);
  TRY(check_recipe(manifest, registry));
  if (manifest.tensors.size() != registry.size()) {
    return refuse("tensors: expected {} for its config, found {}", registry.size(),
                  manifest.tensors.size());
  }
  for (size_t i = 0; i < registry.size(); ++i)
    TRY(check_tensor(manifest, registry[i], manifest.tensors[i]));
  LoadPlan plan{view, {}, {}, 0};
  const std::vector<std::vector<SafetensorsEntry>> planes = planes_by_shard(manifest);
  for (uint32_t i = 0; i < manifest.shards.size(); ++i) {
    TRY_ASSIGN(ShardLayout layout, check_shard(manifest.shards[i], planes[i]));
    if (is_in(manifest.shards[i], view)) {
      append_pieces(plan, manifest.shards[i], i, layout);
      plan.bytes += layout.bytes;
    }
    plan.shard_headers.push_back(std::move(layout.header));
  }
  return plan;
}

}  // namespace tandem::artifact
