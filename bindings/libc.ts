/**
 * The C library (glibc 2.34 or newer, where `dlopen` and `dladdr` live in libc itself).
 *
 * @module
 */
import type { StructDescription, SymbolTable } from "./abi.ts";

/** Functions of libc. */
export const libc = {
  loading: {
    // void *dlopen(const char *filename, int flags);
    dlopen: { args: ["buffer", "i32"], returns: "ptr" },
    // void *dlsym(void *handle, const char *symbol);
    dlsym: { args: ["ptr", "buffer"], returns: "ptr" },
    // char *dlerror(void);
    dlerror: { args: [], returns: "ptr" },
    // int dlinfo(void *handle, int request, void *info);
    dlinfo: { args: ["ptr", "i32", "ptr"], returns: "i32" },
    // int glob(const char *pattern, int flags, int (*errfunc)(const char *epath, int eerrno), glob_t *pglob);
    glob: { args: ["buffer", "i32", "ptr", "ptr"], returns: "i32" },
    // void globfree(glob_t *pglob);
    globfree: { args: ["ptr"], returns: "void" },
    // char *getenv(const char *name);
    getenv: { args: ["buffer"], returns: "ptr" },
    // int setenv(const char *name, const char *value, int overwrite);
    setenv: { args: ["buffer", "buffer", "i32"], returns: "i32" },
    // int unsetenv(const char *name);
    unsetenv: { args: ["buffer"], returns: "i32" },
    // size_t strlen(const char *s);
    strlen: { args: ["ptr"], returns: "size" },
    // void *malloc(size_t size);
    malloc: { args: ["size"], returns: "ptr" },
    // void *calloc(size_t nmemb, size_t size);
    calloc: { args: ["size", "size"], returns: "ptr" },
    // void *aligned_alloc(size_t alignment, size_t size);
    aligned_alloc: { args: ["size", "size"], returns: "ptr" },
    // void free(void *ptr);
    free: { args: ["ptr"], returns: "void" },
  },
  memory: {
    // void *memcpy(void *dest, const void *src, size_t n);
    memcpy: { args: ["ptr", "ptr", "size"], returns: "ptr" },
    // void *memmove(void *dest, const void *src, size_t n);
    memmove: { args: ["ptr", "ptr", "size"], returns: "ptr" },
    // void *memset(void *s, int c, size_t n);
    memset: { args: ["ptr", "i32", "size"], returns: "ptr" },
    // void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
    mmap: { args: ["ptr", "size", "i32", "i32", "i32", "i64"], returns: "ptr" },
    // int mprotect(void *addr, size_t len, int prot);
    mprotect: { args: ["ptr", "size", "i32"], returns: "i32" },
    // int munmap(void *addr, size_t length);
    munmap: { args: ["ptr", "size"], returns: "i32" },
  },
  files: {
    // int pipe2(int *pipefd, int flags);
    pipe2: { args: ["ptr", "i32"], returns: "i32" },
    // int close(int fd);
    close: { args: ["i32"], returns: "i32" },
  },
  stdio: {
    // FILE *open_memstream(char **ptr, size_t *sizeloc);
    open_memstream: { args: ["ptr", "ptr"], returns: "ptr" },
    // int fclose(FILE *stream);
    fclose: { args: ["ptr"], returns: "i32" },
    // size_t fread(void *ptr, size_t size, size_t n, FILE *stream);
    fread: { args: ["ptr", "size", "size", "ptr"], returns: "size" },
    // FILE *popen(const char *command, const char *modes);
    popen: { args: ["buffer", "buffer"], returns: "ptr" },
    // int pclose(FILE *stream);
    pclose: { args: ["ptr"], returns: "i32" },
  },
} as const satisfies SymbolTable;

/** Flags of `dlopen` (bits/dlfcn.h). */
export const RTLD = { LAZY: 1, NOW: 2, LOCAL: 0, GLOBAL: 0x100 } as const;

/** Request of `dlinfo` that answers with a `struct link_map *` (dlfcn.h). */
export const RTLD_DI_LINKMAP = 2;

/** Protections and flags of `mmap` (sys/mman.h, Linux). */
export const PROT = { NONE: 0, READ: 1, WRITE: 2, EXEC: 4 } as const;
/** Flags of `mmap` (sys/mman.h, Linux). */
export const MAP = { SHARED: 1, PRIVATE: 2, ANONYMOUS: 0x20 } as const;

/** The public part of `struct link_map` (link.h). */
export const link_map = {
  l_addr: "u64",
  l_name: "ptr", // char *, absolute path of the file
  l_ld: "ptr",
  l_next: "ptr",
  l_prev: "ptr",
} as const satisfies StructDescription;

/** `glob_t` (glob.h, without the GNU callbacks that only GLOB_ALTDIRFUNC uses; they are padding here). */
export const glob_t = {
  gl_pathc: "size",
  gl_pathv: "ptr", // char **
  gl_offs: "size",
  gl_flags: "i32",
  gl_closedir: "ptr",
  gl_readdir: "ptr",
  gl_opendir: "ptr",
  gl_lstat: "ptr",
  gl_stat: "ptr",
} as const satisfies StructDescription;
