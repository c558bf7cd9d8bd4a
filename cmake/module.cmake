# One static library per folder of src/. Its imports are the folders it may include; a folder that is not
# named here does not link, which keeps the layers of docs/architecture.md true.
#
#   tandem_module(text SOURCES tokenizer.cpp chat.cpp IMPORTS base)
function(tandem_module name)
  cmake_parse_arguments(module "" "" "SOURCES;IMPORTS;LINK" ${ARGN})
  add_library(tandem_${name} STATIC ${module_SOURCES})
  target_include_directories(tandem_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM module_IMPORTS PREPEND tandem_)
  target_link_libraries(tandem_${name} PUBLIC ${module_IMPORTS} ${module_LINK})
  tandem_own_code(tandem_${name})
endfunction()

# One test program per folder of tests/.
#
#   tandem_test(text SOURCES tokenizer_test.cpp IMPORTS text)
function(tandem_test name)
  cmake_parse_arguments(test "" "" "SOURCES;IMPORTS;LINK" ${ARGN})
  add_executable(test_${name} ${test_SOURCES})
  list(TRANSFORM test_IMPORTS PREPEND tandem_)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(test_${name} PRIVATE TANDEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(test_${name} PRIVATE ${test_IMPORTS} ${test_LINK} GTest::gtest_main)
  tandem_own_code(test_${name})
endfunction()

function(tandem_own_code target)
  # Designated initializers leave out what keeps its default, so missing ones are no mistake.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                                           -Wno-missing-field-initializers
                                           $<$<BOOL:${TANDEM_WARNINGS_AS_ERRORS}>:-Werror>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # What optimization makes GCC suspect is often false, and differs between its versions.
    target_compile_options(${target} PRIVATE -Wno-error=array-bounds -Wno-error=maybe-uninitialized
                                             -Wno-error=restrict -Wno-error=dangling-pointer)
  endif()
  if(TANDEM_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=address,undefined -fno-sanitize-recover=undefined
                                            -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
    if(TANDEM_FUZZ)
      target_compile_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
    endif()
  endif()
endfunction()
