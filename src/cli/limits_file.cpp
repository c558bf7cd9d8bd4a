// Limits to JSON and back.
#include "cli/limits_file.h"

#include <bit>

#include "base/files.h"
#include "base/json.h"

namespace tandem::cli {
namespace {

// A limit of kernels, of which every WebGPU adapter has at least WebGPU's default: kernels are
// written for that.
Result<uint32_t> kernel_limit(JsonObject& object, std::string_view key, uint32_t least) {
  TRY_ASSIGN(const uint32_t value, object.get<uint32_t>(key));
  if (value >= least) return value;
  return fail(ErrorCode::limit_exceeded,
              "{}: kernels need {}, which every WebGPU adapter has, found {}", object.where(key),
              least, value);
}

}  // namespace

std::string limits_text(const gpu::Limits& limits) {
  return canonical_json({{"max_buffer_bytes", limits.max_buffer_bytes},
                         {"max_binding_bytes", limits.max_binding_bytes},
                         {"binding_alignment", limits.binding_alignment},
                         {"max_workgroup_bytes", limits.max_workgroup_bytes},
                         {"max_workgroup_invocations", limits.max_workgroup_invocations},
                         {"max_workgroups_per_dimension", limits.max_workgroups_per_dimension},
                         {"max_storage_buffers", limits.max_storage_buffers}});
}

Result<gpu::Limits> read_limits(const std::filesystem::path& file) {
  constexpr uint64_t max_bytes = 1 << 16;
  TRY_ASSIGN(const std::string text, read_file(file, max_bytes, Links::follow));
  Json json;
  TRY_ASSIGN(JsonObject object, open_json_object(text, file.string(), json));
  gpu::Limits limits;
  TRY_ASSIGN(limits.max_buffer_bytes, object.get<uint64_t>("max_buffer_bytes"));
  TRY_ASSIGN(limits.max_binding_bytes, object.get<uint64_t>("max_binding_bytes"));
  TRY_ASSIGN(limits.binding_alignment, object.get<uint32_t>("binding_alignment"));
  TRY_ASSIGN(limits.max_workgroup_bytes, kernel_limit(object, "max_workgroup_bytes", 16384));
  TRY_ASSIGN(limits.max_workgroup_invocations,
             kernel_limit(object, "max_workgroup_invocations", 256));
  TRY_ASSIGN(limits.max_workgroups_per_dimension,
             kernel_limit(object, "max_workgroups_per_dimension", 65535));
  TRY_ASSIGN(limits.max_storage_buffers, kernel_limit(object, "max_storage_buffers", 8));
  TRY(object.finish());
  if (!std::has_single_bit(limits.binding_alignment) || limits.binding_alignment > 256) {
    return fail(ErrorCode::bad_value, "{}: expected a power of two of at most 256, found {}",
                object.where("binding_alignment"), limits.binding_alignment);
  }
  return limits;
}

}  // namespace tandem::cli
