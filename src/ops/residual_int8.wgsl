// What a residual step yields as int8 (op.h), in workgroup memory, for kernels that include this,
// residual_row.wgsl, int8_units.wgsl and int8_place.wgsl. COLUMNS bytes and 8 for each unit.

override UNITS = COLUMNS / 32u;
override WORDS_OF_ROW = COLUMNS / 4u;

// The words of the row, as the format orders them.
var<workgroup> row_words: array<u32, WORDS_OF_ROW>;

fn row_quad(i: u32) -> vec4<u32> {
  return vec4<u32>(row_words[4u * i], row_words[4u * i + 1u], row_words[4u * i + 2u],
                   row_words[4u * i + 3u]);
}

// The words and units of rms_norm(h) * next_weight, all but the norm's factor, which scales all of a
// unit and so changes d alone. Returns it. The units are clear.
fn make_int8(residual: Residual, local: u32) -> f32 {
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * invocations + local;
    if (quad < QUADS) {
      note_quad(quad / 8u, residual.next[k]);
    }
  }
  note_part(residual.square, local);
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * invocations + local;
    if (quad < QUADS) {
      row_words[int8_place(quad, COLUMNS)] = int8_word(quad / 8u, residual.next[k]);
    }
  }
  return norm_scale(sum_of_parts());
}
