/**
 * CPython: the part of its C API needed to run an interpreter in this process and to exchange arrays with it
 * (Python.h), written against Python 3.9 to 3.15. No variadic functions, no macros, no structs of the interpreter.
 *
 * A pointer is a `PyObject *` unless the prototype says otherwise. NULL, or -1 from a function that returns an int,
 * means that an exception is set.
 *
 * @module
 */
import type { StructDescription, SymbolTable } from "./abi.ts";

/** Functions of libpython. */
export const cpython = {
  // Starting and stopping the interpreter.
  opening: {
    // const char *Py_GetVersion(void);
    Py_GetVersion: { args: [], returns: "ptr" },
    // int Py_IsInitialized(void);
    Py_IsInitialized: { args: [], returns: "i32" },
    // void Py_InitializeEx(int);
    Py_InitializeEx: { args: ["i32"], returns: "void" },
    // int Py_FinalizeEx(void);
    Py_FinalizeEx: { args: [], returns: "i32" },
  },
  // Where the interpreter finds its library, to be set before it starts. Deprecated since Python 3.11 in favour of
  // PyConfig, a struct that differs from version to version; the environment variable PYTHONHOME does the same.
  home: {
    // void Py_SetPythonHome(const wchar_t *);
    Py_SetPythonHome: { args: ["ptr"], returns: "void", optional: true },
    // void Py_SetProgramName(const wchar_t *);
    Py_SetProgramName: { args: ["ptr"], returns: "void", optional: true },
    // void PyMem_RawFree(void *ptr);
    PyMem_RawFree: { args: ["ptr"], returns: "void" },
  },
  // Ownership of the interpreter lock.
  threads: {
    // PyThreadState *PyEval_SaveThread(void);
    PyEval_SaveThread: { args: [], returns: "ptr" },
    // void PyEval_RestoreThread(PyThreadState *);
    PyEval_RestoreThread: { args: ["ptr"], returns: "void" },
    // PyGILState_STATE PyGILState_Ensure(void);
    PyGILState_Ensure: { args: [], returns: "i32" },
    // void PyGILState_Release(PyGILState_STATE);
    PyGILState_Release: { args: ["i32"], returns: "void" },
    // int PyGILState_Check(void);
    PyGILState_Check: { args: [], returns: "i32" },
  },
  run: {
    // int PyRun_SimpleString(const char *s);
    PyRun_SimpleString: { args: ["buffer"], returns: "i32" },
    // PyObject *PyRun_StringFlags(const char *, int, PyObject *, PyObject *, PyCompilerFlags *);
    PyRun_StringFlags: { args: ["buffer", "i32", "ptr", "ptr", "ptr"], returns: "ptr" },
    // PyObject *PyImport_ImportModule(const char *name);
    PyImport_ImportModule: { args: ["buffer"], returns: "ptr" },
    // borrowed
    // PyObject *PyImport_AddModule(const char *name);
    PyImport_AddModule: { args: ["buffer"], returns: "ptr" },
    // borrowed
    // PyObject *PyModule_GetDict(PyObject *);
    PyModule_GetDict: { args: ["ptr"], returns: "ptr" },
  },
  // Results are new references unless a comment says borrowed.
  objects: {
    // void Py_IncRef(PyObject *);
    Py_IncRef: { args: ["ptr"], returns: "void" },
    // void Py_DecRef(PyObject *);
    Py_DecRef: { args: ["ptr"], returns: "void" },
    // PyObject *PyObject_Type(PyObject *o);
    PyObject_Type: { args: ["ptr"], returns: "ptr" },
    // unsigned long PyType_GetFlags(PyTypeObject *);
    PyType_GetFlags: { args: ["ptr"], returns: "u64" },
    // int PyType_IsSubtype(PyTypeObject *, PyTypeObject *);
    PyType_IsSubtype: { args: ["ptr", "ptr"], returns: "i32" },
    // borrowed; may be NULL without an exception; private, but in every version so far
    // PyObject *_PyType_Lookup(PyTypeObject *, PyObject *);
    _PyType_Lookup: { args: ["ptr", "ptr"], returns: "ptr", optional: true },
    // PyObject *PyObject_GetAttrString(PyObject *, const char *);
    PyObject_GetAttrString: { args: ["ptr", "buffer"], returns: "ptr" },
    // PyObject *PyObject_GetAttr(PyObject *, PyObject *);
    PyObject_GetAttr: { args: ["ptr", "ptr"], returns: "ptr" },
    // a value of NULL deletes
    // int PyObject_SetAttr(PyObject *, PyObject *, PyObject *);
    PyObject_SetAttr: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
    // int PyObject_HasAttr(PyObject *, PyObject *);
    PyObject_HasAttr: { args: ["ptr", "ptr"], returns: "i32" },
    // int PyObject_SetAttrString(PyObject *, const char *, PyObject *);
    PyObject_SetAttrString: { args: ["ptr", "buffer", "ptr"], returns: "i32" },
    // int PyObject_HasAttrString(PyObject *, const char *);
    PyObject_HasAttrString: { args: ["ptr", "buffer"], returns: "i32" },
    // PyObject *PyObject_GetItem(PyObject *o, PyObject *key);
    PyObject_GetItem: { args: ["ptr", "ptr"], returns: "ptr" },
    // int PyObject_SetItem(PyObject *o, PyObject *key, PyObject *v);
    PyObject_SetItem: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
    // int PyObject_DelItem(PyObject *o, PyObject *key);
    PyObject_DelItem: { args: ["ptr", "ptr"], returns: "i32" },
    // int PyMapping_Check(PyObject *o);
    PyMapping_Check: { args: ["ptr"], returns: "i32" },
    // int PySequence_Contains(PyObject *seq, PyObject *ob);
    PySequence_Contains: { args: ["ptr", "ptr"], returns: "i32" },
    // Py_ssize_t PyObject_Size(PyObject *o);
    PyObject_Size: { args: ["ptr"], returns: "i64" },
    // int PyObject_IsTrue(PyObject *);
    PyObject_IsTrue: { args: ["ptr"], returns: "i32" },
    // int PyObject_IsInstance(PyObject *object, PyObject *typeorclass);
    PyObject_IsInstance: { args: ["ptr", "ptr"], returns: "i32" },
    // int PyObject_RichCompareBool(PyObject *, PyObject *, int);
    PyObject_RichCompareBool: { args: ["ptr", "ptr", "i32"], returns: "i32" },
    // PyObject *PyObject_Repr(PyObject *);
    PyObject_Repr: { args: ["ptr"], returns: "ptr" },
    // PyObject *PyObject_Str(PyObject *);
    PyObject_Str: { args: ["ptr"], returns: "ptr" },
    // int PyCallable_Check(PyObject *);
    PyCallable_Check: { args: ["ptr"], returns: "i32" },
  },
  calls: {
    // PyObject *PyObject_CallNoArgs(PyObject *func);
    PyObject_CallNoArgs: { args: ["ptr"], returns: "ptr" },
    // PyObject *PyObject_CallObject(PyObject *callable, PyObject *args);
    PyObject_CallObject: { args: ["ptr", "ptr"], returns: "ptr" },
    // PyObject *PyObject_Call(PyObject *callable, PyObject *args, PyObject *kwargs);
    PyObject_Call: { args: ["ptr", "ptr", "ptr"], returns: "ptr" },
    // PyObject *PyObject_VectorcallDict(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwargs);
    PyObject_VectorcallDict: { args: ["ptr", "ptr", "size", "ptr"], returns: "ptr" },
    // PyObject *PyObject_VectorcallMethod(PyObject *name, PyObject *const *args, size_t nargsf, PyObject *kwnames);
    PyObject_VectorcallMethod: { args: ["ptr", "ptr", "size", "ptr"], returns: "ptr" },
  },
  // What a function or method is bound to; all results are borrowed, and arguments must be of exactly these types.
  methods: {
    // PyObject *PyMethod_Function(PyObject *);
    PyMethod_Function: { args: ["ptr"], returns: "ptr" },
    // PyObject *PyMethod_Self(PyObject *);
    PyMethod_Self: { args: ["ptr"], returns: "ptr" },
    // NULL for a static method, without an exception
    // PyObject *PyCFunction_GetSelf(PyObject *);
    PyCFunction_GetSelf: { args: ["ptr"], returns: "ptr" },
    // PyCFunction PyCFunction_GetFunction(PyObject *);
    PyCFunction_GetFunction: { args: ["ptr"], returns: "ptr" },
  },
  iteration: {
    // PyObject *PyObject_GetIter(PyObject *);
    PyObject_GetIter: { args: ["ptr"], returns: "ptr" },
    // PyObject *PyIter_Next(PyObject *);
    PyIter_Next: { args: ["ptr"], returns: "ptr" },
  },
  tuples: {
    // PyObject *PyTuple_New(Py_ssize_t size);
    PyTuple_New: { args: ["i64"], returns: "ptr" },
    // steals the reference to the item
    // int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *);
    PyTuple_SetItem: { args: ["ptr", "i64", "ptr"], returns: "i32" },
    // borrowed
    // PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t);
    PyTuple_GetItem: { args: ["ptr", "i64"], returns: "ptr" },
    // Py_ssize_t PyTuple_Size(PyObject *);
    PyTuple_Size: { args: ["ptr"], returns: "i64" },
  },
  cells: {
    // takes a new reference to the value, which may be NULL
    // int PyCell_Set(PyObject *, PyObject *);
    PyCell_Set: { args: ["ptr", "ptr"], returns: "i32" },
  },
  lists: {
    // PyObject *PyList_New(Py_ssize_t size);
    PyList_New: { args: ["i64"], returns: "ptr" },
    // steals the reference to the item
    // int PyList_SetItem(PyObject *, Py_ssize_t, PyObject *);
    PyList_SetItem: { args: ["ptr", "i64", "ptr"], returns: "i32" },
    // borrowed
    // PyObject *PyList_GetItem(PyObject *, Py_ssize_t);
    PyList_GetItem: { args: ["ptr", "i64"], returns: "ptr" },
    // int PyList_Append(PyObject *, PyObject *);
    PyList_Append: { args: ["ptr", "ptr"], returns: "i32" },
    // Py_ssize_t PyList_Size(PyObject *);
    PyList_Size: { args: ["ptr"], returns: "i64" },
  },
  dicts: {
    // PyObject *PyDict_New(void);
    PyDict_New: { args: [], returns: "ptr" },
    // int PyDict_SetItem(PyObject *mp, PyObject *key, PyObject *item);
    PyDict_SetItem: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
    // int PyDict_SetItemString(PyObject *dp, const char *key, PyObject *item);
    PyDict_SetItemString: { args: ["ptr", "buffer", "ptr"], returns: "i32" },
    // borrowed
    // PyObject *PyDict_GetItemString(PyObject *dp, const char *key);
    PyDict_GetItemString: { args: ["ptr", "buffer"], returns: "ptr" },
    // borrowed
    // int PyDict_Next(PyObject *mp, Py_ssize_t *pos, PyObject **key, PyObject **value);
    PyDict_Next: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
    // Py_ssize_t PyDict_Size(PyObject *mp);
    PyDict_Size: { args: ["ptr"], returns: "i64" },
  },
  numbers: {
    // PyObject *PyLong_FromLongLong(long long);
    PyLong_FromLongLong: { args: ["i64"], returns: "ptr" },
    // PyObject *PyLong_FromUnsignedLongLong(unsigned long long);
    PyLong_FromUnsignedLongLong: { args: ["u64"], returns: "ptr" },
    // long long PyLong_AsLongLong(PyObject *);
    PyLong_AsLongLong: { args: ["ptr"], returns: "i64" },
    // long long PyLong_AsLongLongAndOverflow(PyObject *, int *);
    PyLong_AsLongLongAndOverflow: { args: ["ptr", "ptr"], returns: "i64" },
    // unsigned long long PyLong_AsUnsignedLongLong(PyObject *);
    PyLong_AsUnsignedLongLong: { args: ["ptr"], returns: "u64" },
    // PyObject *PyLong_FromDouble(double);
    PyLong_FromDouble: { args: ["f64"], returns: "ptr" },
    // double PyLong_AsDouble(PyObject *);
    PyLong_AsDouble: { args: ["ptr"], returns: "f64" },
    // PyObject *PyNumber_Index(PyObject *o);
    PyNumber_Index: { args: ["ptr"], returns: "ptr" },
    // PyObject *PyFloat_FromDouble(double);
    PyFloat_FromDouble: { args: ["f64"], returns: "ptr" },
    // double PyFloat_AsDouble(PyObject *);
    PyFloat_AsDouble: { args: ["ptr"], returns: "f64" },
    // PyObject *PyBool_FromLong(long);
    PyBool_FromLong: { args: ["i64"], returns: "ptr" },
  },
  text: {
    // PyObject *PyUnicode_FromStringAndSize(const char *u, Py_ssize_t size);
    PyUnicode_FromStringAndSize: { args: ["ptr", "i64"], returns: "ptr" },
    // replaces the object by the unique interned one of equal value; consumes a reference and returns one
    // void PyUnicode_InternInPlace(PyObject **);
    PyUnicode_InternInPlace: { args: ["ptr"], returns: "void" },
    // the text belongs to the object
    // const char *PyUnicode_AsUTF8AndSize(PyObject *unicode, Py_ssize_t *size);
    PyUnicode_AsUTF8AndSize: { args: ["ptr", "ptr"], returns: "ptr" },
    // PyObject *PyUnicode_DecodeUTF16(const char *string, Py_ssize_t length, const char *errors, int *byteorder);
    PyUnicode_DecodeUTF16: { args: ["buffer", "i64", "buffer", "ptr"], returns: "ptr" },
    // PyObject *PyUnicode_AsEncodedString(PyObject *unicode, const char *encoding, const char *errors);
    PyUnicode_AsEncodedString: { args: ["ptr", "buffer", "buffer"], returns: "ptr" },
    // PyObject *PyBytes_FromStringAndSize(const char *, Py_ssize_t);
    PyBytes_FromStringAndSize: { args: ["buffer", "i64"], returns: "ptr" },
    // the bytes belong to the object
    // int PyBytes_AsStringAndSize(PyObject *obj, char **s, Py_ssize_t *len);
    PyBytes_AsStringAndSize: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
  },
  errors: {
    // borrowed
    // PyObject *PyErr_Occurred(void);
    PyErr_Occurred: { args: [], returns: "ptr" },
    // void PyErr_Clear(void);
    PyErr_Clear: { args: [], returns: "void" },
    // void PyErr_SetString(PyObject *exception, const char *string);
    PyErr_SetString: { args: ["ptr", "buffer"], returns: "void" },
    // int PyErr_GivenExceptionMatches(PyObject *, PyObject *);
    PyErr_GivenExceptionMatches: { args: ["ptr", "ptr"], returns: "i32" },
    // void PyErr_Fetch(PyObject **, PyObject **, PyObject **);
    PyErr_Fetch: { args: ["ptr", "ptr", "ptr"], returns: "void" },
    // void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **);
    PyErr_NormalizeException: { args: ["ptr", "ptr", "ptr"], returns: "void" },
    // void PyErr_Restore(PyObject *, PyObject *, PyObject *);
    PyErr_Restore: { args: ["ptr", "ptr", "ptr"], returns: "void" },
    // since Python 3.12, which deprecates the three above
    // PyObject *PyErr_GetRaisedException(void);
    PyErr_GetRaisedException: { args: [], returns: "ptr", optional: true },
    // PyObject *PyException_GetTraceback(PyObject *);
    PyException_GetTraceback: { args: ["ptr"], returns: "ptr" },
  },
  // A capsule keeps the address of its name, so the name must live as long as the capsule.
  capsules: {
    // PyObject *PyCapsule_New(void *pointer, const char *name, PyCapsule_Destructor destructor);
    PyCapsule_New: { args: ["ptr", "ptr", "ptr"], returns: "ptr" },
    // int PyCapsule_IsValid(PyObject *capsule, const char *name);
    PyCapsule_IsValid: { args: ["ptr", "buffer"], returns: "i32" },
    // void *PyCapsule_GetPointer(PyObject *capsule, const char *name);
    PyCapsule_GetPointer: { args: ["ptr", "ptr"], returns: "ptr" },
    // const char *PyCapsule_GetName(PyObject *capsule);
    PyCapsule_GetName: { args: ["ptr"], returns: "ptr" },
    // int PyCapsule_SetName(PyObject *capsule, const char *name);
    PyCapsule_SetName: { args: ["ptr", "ptr"], returns: "i32" },
    // void *PyCapsule_GetContext(PyObject *capsule);
    PyCapsule_GetContext: { args: ["ptr"], returns: "ptr" },
    // int PyCapsule_SetContext(PyObject *capsule, void *context);
    PyCapsule_SetContext: { args: ["ptr", "ptr"], returns: "i32" },
    // int PyCapsule_SetDestructor(PyObject *capsule, PyCapsule_Destructor destructor);
    PyCapsule_SetDestructor: { args: ["ptr", "ptr"], returns: "i32" },
  },
  buffers: {
    // int PyObject_CheckBuffer(PyObject *obj);
    PyObject_CheckBuffer: { args: ["ptr"], returns: "i32" },
    // int PyObject_GetBuffer(PyObject *obj, Py_buffer *view, int flags);
    PyObject_GetBuffer: { args: ["ptr", "ptr", "i32"], returns: "i32" },
    // void PyBuffer_Release(Py_buffer *view);
    PyBuffer_Release: { args: ["ptr"], returns: "void" },
    // PyObject *PyMemoryView_FromMemory(char *mem, Py_ssize_t size, int flags);
    PyMemoryView_FromMemory: { args: ["ptr", "i64", "i32"], returns: "ptr" },
  },
} as const satisfies SymbolTable;

/** Memory of an object with the buffer protocol: PyObject_GetBuffer() fills it, PyBuffer_Release() releases it. */
export const Py_buffer = {
  buf: "ptr", // void *
  obj: "ptr", // PyObject *, owned
  len: "i64", // bytes
  itemsize: "i64",
  readonly: "i32",
  ndim: "i32",
  format: "ptr", // char *, in the format of the struct module; NULL: unsigned bytes
  shape: "ptr", // Py_ssize_t *
  strides: "ptr", // Py_ssize_t *, bytes
  suboffsets: "ptr", // Py_ssize_t *
  internal: "ptr", // void *
} as const satisfies StructDescription;

/** `flags` of PyObject_GetBuffer(). */
export const PyBUF = {
  SIMPLE: 0,
  WRITABLE: 1,
  FORMAT: 4,
  ND: 8,
  STRIDES: 0x18,
  INDIRECT: 0x118,
  FULL_RO: 0x11c,
  FULL: 0x11d,
  READ: 0x100,
  WRITE: 0x200,
} as const;

/** Values of `start` of PyRun_StringFlags(): a single statement, a module, an expression. */
export const Py_input = { Py_single_input: 256, Py_file_input: 257, Py_eval_input: 258 } as const;

/** Comparisons of PyObject_RichCompareBool(). */
export const Py_compare = { Py_LT: 0, Py_LE: 1, Py_EQ: 2, Py_NE: 3, Py_GT: 4, Py_GE: 5 } as const;

/** Bits of PyType_GetFlags() that distinguish the built-in types, subclasses included. */
export const Py_TPFLAGS = {
  /** The type is derived from collections.abc.Sequence, or registered there. From Python 3.10. */
  SEQUENCE: 0x20n,
  /** The type is derived from collections.abc.Mapping, or registered there. From Python 3.10. */
  MAPPING: 0x40n,
  /** The type is immutable, although created at run time. */
  IMMUTABLETYPE: 0x100n,
  /** The type was created at run time, as classes are. */
  HEAPTYPE: 0x200n,
  LONG_SUBCLASS: 0x1000000n,
  LIST_SUBCLASS: 0x2000000n,
  TUPLE_SUBCLASS: 0x4000000n,
  BYTES_SUBCLASS: 0x8000000n,
  UNICODE_SUBCLASS: 0x10000000n,
  DICT_SUBCLASS: 0x20000000n,
  BASE_EXC_SUBCLASS: 0x40000000n,
  TYPE_SUBCLASS: 0x80000000n,
} as const;
