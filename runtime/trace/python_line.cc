// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/trace/python_line.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "runtime/base/start_folder.h"

namespace ibcoll {
namespace {

using Object = void;  // PyObject

template <typename Function>
bool take(Function*& function, const char* name) noexcept {
  function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

// Functions of the interpreter in this process, by the names that they have had since Python 3.9.
struct Interpreter {
  int (*is_initialized)() = nullptr;
  int (*lock)() = nullptr;
  void (*unlock)(int) = nullptr;
  Object* (*frame)() = nullptr;  // borrowed
  Object* (*code)(Object* frame) = nullptr;
  int (*line)(Object* frame) = nullptr;
  Object* (*attribute)(Object*, const char* name) = nullptr;
  const char* (*text)(Object*) = nullptr;
  void (*clear_error)() = nullptr;
  void (*release)(Object*) = nullptr;
  bool there = take(is_initialized, "Py_IsInitialized") && take(lock, "PyGILState_Ensure") &&
               take(unlock, "PyGILState_Release") && take(frame, "PyEval_GetFrame") && take(code, "PyFrame_GetCode") &&
               take(line, "PyFrame_GetLineNumber") && take(attribute, "PyObject_GetAttrString") &&
               take(text, "PyUnicode_AsUTF8") && take(clear_error, "PyErr_Clear") && take(release, "Py_DecRef");
};

// Asked for when a thread of Python calls, so that the interpreter is there.
const Interpreter& interpreter() {
  static const Interpreter one;
  return one;
}

// By code object and line. A code object that is known is never released, so that no other one gets its address.
class Known {
 public:
  using Key = std::pair<Object*, int>;
  const PythonLine* find(const Key& key) {
    const std::lock_guard guard(lock_);
    const auto at = lines_.find(key);
    return at == lines_.end() ? nullptr : &at->second;
  }
  // Returns what is known about the key, and whether it is `line`.
  std::pair<const PythonLine*, bool> add(const Key& key, PythonLine line) {
    const std::lock_guard guard(lock_);
    const auto [at, is_new] = lines_.try_emplace(key, std::move(line));
    addresses_.insert(&at->second);
    return {&at->second, is_new};
  }
  bool has(const void* line) {
    const std::lock_guard guard(lock_);
    return addresses_.count(line) > 0;
  }

 private:
  std::mutex lock_;
  std::map<Key, PythonLine> lines_;
  std::set<const void*> addresses_;
};

Known& known() {
  static auto* const one = new Known;  // traces are written while the process ends
  return *one;
}

std::string attribute_of(const Interpreter& python, Object* object, const char* name) {
  Object* const value = python.attribute(object, name);
  const char* const text = value ? python.text(value) : nullptr;
  const std::string copy = text ? text : "";
  if (!text) python.clear_error();
  if (value) python.release(value);
  return copy;
}

PythonLine described(const Interpreter& python, Object* code, int line) {
  PythonLine one{attribute_of(python, code, "co_filename"), line, attribute_of(python, code, "co_qualname")};
  if (one.function.empty()) one.function = attribute_of(python, code, "co_name");  // before Python 3.11
  if (!one.file.empty() && !one.file.starts_with('<')) one.file = from_start_folder(one.file);
  return one;
}

// The interpreter's lock is held. Python may let other threads run, and its garbage collector, whenever it is called:
// not under the lock of what is known.
const PythonLine* line_of(const Interpreter& python, Object* frame) {
  Object* const code = python.code(frame);
  const int line = python.line(frame);
  Known& all = known();
  if (const PythonLine* const before = all.find({code, line})) {
    python.release(code);
    return before;
  }
  const auto [one, is_new] = all.add({code, line}, described(python, code, line));
  if (!is_new) python.release(code);
  return one;
}

}  // namespace

const PythonLine* current_python_line() noexcept {
  const Interpreter& python = interpreter();
  if (!python.there || python.is_initialized() == 0) return nullptr;
  const int before = python.lock();
  const PythonLine* line = nullptr;
  try {
    if (Object* const frame = python.frame()) line = line_of(python, frame);
  } catch (const std::bad_alloc&) {
  }
  python.unlock(before);
  return line;
}

const PythonLine* find_python_line(const void* line) noexcept {
  return known().has(line) ? static_cast<const PythonLine*>(line) : nullptr;
}

}  // namespace ibcoll
