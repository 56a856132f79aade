// Parameters by name: each is there once, and its address stays.
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_parameter_store {

TEST_CASE("parameter store: a name that exists already is refused, and nothing is added") {
  ParameterStore store;
  store.add({"fc.weight", Role::kWeight, Shape{4, 5}, {}, {}}, 1);
  CHECK(refusal([&] {
          store.add({"fc.weight", Role::kBias, Shape{3}, {}, {}}, 1);
        }) == "ParameterStore: a parameter named 'fc.weight' exists already");
  CHECK(store.size() == 1);
  CHECK(store.find("fc.weight").shape() == Shape{4, 5});
}

TEST_CASE("parameter store: a name that is not there is refused with the nearest one") {
  ParameterStore store;
  store.add({"fc.weight", Role::kWeight, Shape{4, 5}, {}, {}}, 1);
  store.add({"head.bias", Role::kBias, Shape{5}, {}, {}}, 1);
  CHECK(refusal([&] { store.find("fc.weigth"); }) ==
        "ParameterStore: no parameter named 'fc.weigth'; did you mean 'fc.weight'? Known: "
        "fc.weight, head.bias");
  CHECK(contains(refusal([&] { store.find("head.bia"); }), "did you mean 'head.bias'?"));
}

TEST_CASE("parameter store: references stay valid while others are added") {
  ParameterStore store;
  Parameter& first = store.add({"p0", Role::kBias, Shape{2}, {}, {}}, 1);
  for (int i = 1; i < 500; ++i) {
    store.add({"p" + std::to_string(i), Role::kBias, Shape{2}, {}, {}}, 1);
  }
  CHECK(&store.find("p0") == &first);
}

}  // namespace tritgrad::test::test_parameter_store
