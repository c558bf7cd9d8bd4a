// Wall builds have no timestamps, and web.cpp refuses a timed submission there: an Emscripten library.

mergeInto(LibraryManager.library, {
  $TandemTiming: {},
});
