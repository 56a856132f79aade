#include "engine/tape.h"

#include <utility>

namespace tritgrad {

Var Tape::variable(const Shape& shape, bool wants_grad) {
  Var var{recycled_or_new(shape), {}};
  if (wants_grad && recording_) var.note = new (arena_.allocate<ValueNote>(1)) ValueNote;
  return var;
}

Var Tape::without_value(const Shape& shape) {
  Var var{{nullptr, shape}, {}};
  if (recording_) var.note = new (arena_.allocate<ValueNote>(1)) ValueNote;
  return var;
}

void Tape::release(const Var& x) {
  if (!x.wants_grad()) return;
  check(!x.note->released, "Tape::release: this value of shape ", x.shape().str(),
        " was released already");
  x.note->released = true;
  if (!x.note->is_read && x.value) recycled_.push_back(x.value);
}

Tensor Tape::recycled_or_new(const Shape& shape) {
  const std::int64_t size = shape.size();
  const auto fits = [&](const Tensor& memory) {
    return memory.size() >= size && memory.size() / 2 <= size;
  };
  const auto found = std::find_if(recycled_.begin(), recycled_.end(), fits);
  if (found == recycled_.end()) return tensor(shape);
  const Tensor reused{found->data, shape};
  recycled_.erase(found);
  return reused;
}

GradientTarget Tape::target(const Var& x) {
  if (x.grad()) return {x.grad(), false};
  x.note->gradient = recycled_or_new(x.shape());
  return {x.grad(), true};
}

GradientTarget Tape::target_in_place(const Var& x, const Var& y) {
  if (x.grad()) return {x.grad(), false};
  x.note->gradient = {std::exchange(y.note->gradient.data, nullptr), x.shape()};
  return {x.grad(), true};
}

Tensor Tape::grad_to(const Var& x) {
  const auto [grad, fresh] = target(x);
  if (fresh) grad.fill(0.0f);
  return grad;
}

Tensor Tape::grad_of(const Var& y) { return grad_to(y); }

void Tape::recycle(Tensor& gradient) {
  if (gradient) recycled_.push_back(std::exchange(gradient, {}));
}

void Tape::append(const Var& y, std::initializer_list<Var> reads,
                  std::initializer_list<Parameter*> parameters, void* closure,
                  void (*call)(void*)) {
  check(y.wants_grad(), "Tape::record: what the op produced wants no gradient");
  check(parameters.size() <= kMaxParameters, "Tape::record: ", parameters.size(),
        " parameters given, at most ", kMaxParameters, " supported");
  for (const Var& x : reads) {
    if (!x.wants_grad()) continue;
    check(static_cast<bool>(x.value), "Tape::record: a value of shape ", x.shape().str(),
          " is to be read in backward, but has no memory");
    check(!x.note->released, "Tape::record: a value of shape ", x.shape().str(),
          " is to be read in backward, but was released");
    x.note->is_read = true;
  }
  Node node{y.note, closure, call, {}};
  std::copy(parameters.begin(), parameters.end(), node.parameters.begin());
  for (Parameter* parameter : parameters) {
    if (parameter != nullptr) ++parameter->pending_uses;
  }
  nodes_.push_back(node);
}

Tensor Tape::gradient(Parameter& parameter, double bound) {
  if (!parameter.grad) {
    if (!parameter.gradient_is_kept()) parameter.forget_gradient_bound();
    parameter.grad = {gradients_.allocate<float>(parameter.shape().size()), parameter.shape()};
    parameter.grad.fill(0.0f);
    ++lent_gradients_;
  }
  parameter.add_to_gradient_bound(bound);
  return parameter.grad;
}

bool Tape::offer_gradient(Parameter& parameter, const LazyGradient& source) {
  if (parameter.pending_uses > 1 || parameter.grad || parameter.gradient_is_kept()) return false;
  parameter.lazy_gradient = &source;
  return true;
}

// Whether its gradient lay in memory of a tape.
bool Tape::take_gradient(Parameter& parameter) {
  parameter.lazy_gradient = nullptr;
  const bool own =
      parameter.gradient_is_kept() && parameter.kept_gradient()->fp32_data() != nullptr;
  if (own || !parameter.grad) return false;
  parameter.grad = {};
  return true;
}

void Tape::release_gradient(Parameter& parameter) {
  // The memory is reused by the layers below as soon as no gradient is waiting.
  if (take_gradient(parameter) && --lent_gradients_ == 0) gradients_.reset();
}

void Tape::begin_backward(const Var& loss, float weight) {
  check(loss.value.size() == 1, "Tape::backward: the loss has shape ", loss.shape().str(),
        ", expected one element; reduce it first");
  check(loss.wants_grad(), "Tape::backward: the loss does not depend on any parameter");
  check(!walked_,
        "Tape::backward: this step was walked already; call reset() and record a new one");
  walked_ = true;
  *grad_to(loss).data = weight;
}

void Tape::backward(const Var& loss, float weight) {
  for (const Node& node : nodes_) {
    for (Parameter* parameter : node.parameters) {
      if (parameter == nullptr || parameter->gradient_is_kept()) continue;
      fail("Tape::backward: parameter '", parameter->name(),
           "' does not keep its gradient; call keep_gradients() or pass on_ready");
    }
  }
  backward(
      loss, [](Parameter&) {}, weight);
}

void Tape::forget_parameters() {
  for (const Node& node : nodes_) {
    for (Parameter* parameter : node.parameters) {
      if (parameter == nullptr) continue;
      parameter->pending_uses = 0;
      take_gradient(*parameter);
    }
  }
}

void Tape::reset() {
  forget_parameters();
  nodes_.clear();
  recycled_.clear();
  lent_gradients_ = 0;
  walked_ = false;
  arena_.reset();
  gradients_.reset();
  workspace_.reset();
}

}  // namespace tritgrad
