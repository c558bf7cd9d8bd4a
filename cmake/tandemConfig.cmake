# find_package(tandem) reads this: the target tandem::tandem.
include(CMakeFindDependencyMacro)
find_dependency(tl-expected)
include(${CMAKE_CURRENT_LIST_DIR}/tandemTargets.cmake)
