// Times products of few rows on a device, cut in different ways, and says which cut each shape is
// to have.
#pragma once

#include <map>

#include "ops/linear/tiling_search.h"

namespace tandem::ops {

using TunedProducts = std::map<std::string, TunedProduct, std::less<>>;  // by shape

// `products`: one of each shape, whose weights are there already; of these only the largest of each
// type is read. `few_rows`: 2 to 4. The device has timestamps. Waits; some seconds for a model.
Result<TunedProducts> tune(gpu::Device& device, std::span<const Linear> products,
                           uint32_t few_rows);

}  // namespace tandem::ops
