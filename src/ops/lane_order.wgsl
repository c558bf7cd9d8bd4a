// Where the quad of four columns that is number `quad` of a row lies when the row is in lane order
// (op.h), for kernels that include this.
fn lane_order(quad: u32, columns: u32) -> u32 {
  return quad % 8u * (columns / 32u) + quad / 8u;
}
