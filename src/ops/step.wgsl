// What the rows of one step are: ops::Step (op.h), for kernels that include this.

struct Step {
  position: u32,
  rows: u32,
  remaining: u32,
  rounds: u32,
  token: u32,
  stop: u32,
  accepted: u32,
  reserved: u32,
}
