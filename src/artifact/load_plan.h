// The load plan: every piece of every shard of a view in order, with its hash and where its bytes
// go. Any loader, native or browser, carries it out as it is; nothing is transformed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "base/sha256.h"
#include "tandem/error.h"

namespace tandem::artifact {

struct Segment {
  std::string plane;          // "layers.0.qkv.quants"
  uint64_t piece_offset = 0;  // in the piece
  uint64_t plane_offset = 0;
  uint64_t bytes = 0;
  uint32_t number_bytes = 0;  // of F16 and F32, which must be finite; 0: of other types
};

struct Piece {
  uint32_t shard = 0;   // index in the manifest
  uint32_t index = 0;   // in the shard
  uint64_t offset = 0;  // in the shard's file
  uint64_t bytes = 0;
  Digest sha256;
  std::vector<Segment> segments;
};

struct LoadPlan {
  View view = View::plain;
  std::vector<std::string> shard_headers;  // what each shard's file begins with, in any view
  std::vector<Piece> pieces;
  uint64_t bytes = 0;  // of the view's shards
};

// Checks that the manifest's fields agree with its config and with one another: exactly the tensors
// of the registry, in its order, shapes and types; planes that tile their shards; as many pieces as
// a shard's bytes make; shards of one role; bounds that the config allows. Refuses a view that the
// manifest does not have.
Result<LoadPlan> make_load_plan(const Manifest& manifest, View view = View::plain);

}  // namespace tandem::artifact
