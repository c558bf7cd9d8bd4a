// Where a row of `columns` in the format int8 (op.h) has what, in words, for kernels that include
// this.

// The word of the quad of four columns that is number `quad` of the row.
fn int8_place(quad: u32, columns: u32) -> u32 {
  return 4u * (quad % 8u / 4u * (columns / 32u) + quad / 8u) + quad % 4u;
}

// d, which the sum of q follows.
fn int8_scale_place(unit: u32, columns: u32) -> u32 {
  return columns / 4u + 2u * unit;
}
