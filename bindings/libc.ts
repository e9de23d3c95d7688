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
  paging: {
    // int madvise(void *addr, size_t length, int advice);
    madvise: { args: ["ptr", "size", "i32"], returns: "i32" },
  },
  memory: {
    // void *memcpy(void *dest, const void *src, size_t n);
    memcpy: { args: ["ptr", "ptr", "size"], returns: "ptr" },
    // void bcopy(const void *src, void *dest, size_t n);
    bcopy: { args: ["ptr", "ptr", "size"], returns: "void" },
    // int memcmp(const void *s1, const void *s2, size_t n);
    memcmp: { args: ["ptr", "ptr", "size"], returns: "i32" },
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
  // Functions that call a function passed to them.
  callers: {
    // void *bsearch(const void *key, const void *base, size_t nmemb, size_t size, int (*compar)(const void *, const
    // void *));
    bsearch: { args: ["ptr", "ptr", "size", "size", "ptr"], returns: "ptr" },
  },
  files: {
    // int close(int fd);
    close: { args: ["i32"], returns: "i32" },
    // int dup3(int oldfd, int newfd, int flags);
    dup3: { args: ["i32", "i32", "i32"], returns: "i32" },
    // int eventfd(unsigned int initval, int flags);
    eventfd: { args: ["u32", "i32"], returns: "i32" },
    // int eventfd_write(int fd, eventfd_t value);
    eventfd_write: { args: ["i32", "u64"], returns: "i32" },
    // int eventfd_read(int fd, eventfd_t *value);
    eventfd_read: { args: ["i32", "ptr"], returns: "i32" },
    // int epoll_create1(int flags);
    epoll_create1: { args: ["i32"], returns: "i32" },
    // int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
    epoll_ctl: { args: ["i32", "i32", "i32", "ptr"], returns: "i32" },
    // int epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout);
    epoll_wait: { args: ["i32", "ptr", "i32", "i32"], returns: "i32" },
    // int memfd_create(const char *name, unsigned int flags);
    memfd_create: { args: ["buffer", "u32"], returns: "i32" },
    // off_t lseek(int fd, off_t offset, int whence);
    lseek: { args: ["i32", "i64", "i32"], returns: "i64" },
    // ssize_t pread(int fd, void *buf, size_t count, off_t offset);
    pread: { args: ["i32", "ptr", "size", "i64"], returns: "i64" },
    // ssize_t readlink(const char *path, char *buf, size_t bufsiz);
    readlink: { args: ["buffer", "ptr", "size"], returns: "i64" },
    // ssize_t pwrite(int fd, const void *buf, size_t count, off_t offset);
    pwrite: { args: ["i32", "ptr", "size", "i64"], returns: "i64" },
  },
  // Timers as descriptors.
  timers: {
    // int timerfd_create(clockid_t clockid, int flags);
    timerfd_create: { args: ["i32", "i32"], returns: "i32" },
    // int timerfd_settime(int fd, int flags, const struct itimerspec *new_value, struct itimerspec *old_value);
    timerfd_settime: { args: ["i32", "i32", "ptr", "ptr"], returns: "i32" },
    // int timerfd_gettime(int fd, struct itimerspec *curr_value);
    timerfd_gettime: { args: ["i32", "ptr"], returns: "i32" },
  },
  // Sockets: local ones, which pass file descriptors in messages, and TCP.
  sockets: {
    // int socket(int domain, int type, int protocol);
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    // int socketpair(int domain, int type, int protocol, int *sv);
    socketpair: { args: ["i32", "i32", "i32", "ptr"], returns: "i32" },
    // int shutdown(int sockfd, int how);
    shutdown: { args: ["i32", "i32"], returns: "i32" },
    // int bind(int sockfd, const struct sockaddr *addr, socklen_t addrlen);
    bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
    // int listen(int sockfd, int backlog);
    listen: { args: ["i32", "i32"], returns: "i32" },
    // int accept4(int sockfd, struct sockaddr *addr, socklen_t *addrlen, int flags);
    accept4: { args: ["i32", "ptr", "ptr", "i32"], returns: "i32" },
    // int connect(int sockfd, const struct sockaddr *addr, socklen_t addrlen);
    connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
    // int getsockopt(int sockfd, int level, int optname, void *optval, socklen_t *optlen);
    getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
    // int setsockopt(int sockfd, int level, int optname, const void *optval, socklen_t optlen);
    setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
    // int getsockname(int sockfd, struct sockaddr *addr, socklen_t *addrlen);
    getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    // int getpeername(int sockfd, struct sockaddr *addr, socklen_t *addrlen);
    getpeername: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    // ssize_t send(int sockfd, const void *buf, size_t len, int flags);
    send: { args: ["i32", "ptr", "size", "i32"], returns: "i64" },
    // ssize_t recv(int sockfd, void *buf, size_t len, int flags);
    recv: { args: ["i32", "ptr", "size", "i32"], returns: "i64" },
    // unsigned int if_nametoindex(const char *ifname);
    if_nametoindex: { args: ["buffer"], returns: "u32" },
    // ssize_t sendmsg(int sockfd, const struct msghdr *msg, int flags);
    sendmsg: { args: ["i32", "ptr", "i32"], returns: "i64" },
    // ssize_t recvmsg(int sockfd, struct msghdr *msg, int flags);
    recvmsg: { args: ["i32", "ptr", "i32"], returns: "i64" },
    // int poll(struct pollfd *fds, nfds_t nfds, int timeout);
    poll: { args: ["ptr", "u64", "i32"], returns: "i32" },
    // int unlink(const char *pathname);
    unlink: { args: ["buffer"], returns: "i32" },
    // pid_t getpid(void);
    getpid: { args: [], returns: "i32" },
    // uid_t geteuid(void);
    geteuid: { args: [], returns: "u32" },
    // int *__errno_location(void);
    __errno_location: { args: [], returns: "ptr" },
  },
  // Threads that run only machine code and C functions.
  threads: {
    // int pthread_create(pthread_t *newthread, const pthread_attr_t *attr, void *(*start_routine)(void *), void *arg);
    pthread_create: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
    // int pthread_join(pthread_t th, void **thread_return);
    pthread_join: { args: ["u64", "ptr"], returns: "i32" },
    // int pthread_sigmask(int how, const sigset_t *newmask, sigset_t *oldmask);
    pthread_sigmask: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    // int sem_init(sem_t *sem, int pshared, unsigned int value);
    sem_init: { args: ["ptr", "i32", "u32"], returns: "i32" },
    // int sem_wait(sem_t *sem);
    sem_wait: { args: ["ptr"], returns: "i32" },
    // int sem_post(sem_t *sem);
    sem_post: { args: ["ptr"], returns: "i32" },
    // int sigfillset(sigset_t *set);
    sigfillset: { args: ["ptr"], returns: "i32" },
  },
  // pthread_attr_setsigmask_np is in glibc since 2.32.
  threadAttributes: {
    // int pthread_attr_init(pthread_attr_t *attr);
    pthread_attr_init: { args: ["ptr"], returns: "i32" },
    // int pthread_attr_setsigmask_np(pthread_attr_t *attr, const sigset_t *sigmask);
    pthread_attr_setsigmask_np: { args: ["ptr", "ptr"], returns: "i32" },
    // int pthread_attr_destroy(pthread_attr_t *attr);
    pthread_attr_destroy: { args: ["ptr"], returns: "i32" },
  },
  // In glibc since 2.36.
  processes: {
    // int pidfd_open(pid_t pid, unsigned int flags);
    pidfd_open: { args: ["i32", "u32"], returns: "i32" },
  },
  // In glibc since 2.34.
  ranges: {
    // int close_range(unsigned int first, unsigned int last, int flags);
    close_range: { args: ["u32", "u32", "i32"], returns: "i32" },
  },
  scheduling: {
    // int sched_setaffinity(pid_t pid, size_t cpusetsize, const cpu_set_t *cpuset);
    sched_setaffinity: { args: ["i32", "size", "ptr"], returns: "i32" },
  },
  stdio: {
    // FILE *fopen(const char *pathname, const char *mode);
    fopen: { args: ["buffer", "buffer"], returns: "ptr" },
    // int fileno(FILE *stream);
    fileno: { args: ["ptr"], returns: "i32" },
    // FILE *fmemopen(void *buf, size_t size, const char *mode);
    fmemopen: { args: ["ptr", "size", "buffer"], returns: "ptr" },
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
export const RTLD = { LAZY: 1, NOW: 2, NOLOAD: 4, LOCAL: 0, GLOBAL: 0x100 } as const;

/** Request of `dlinfo` that returns a `struct link_map *` (dlfcn.h). */
export const RTLD_DI_LINKMAP = 2;

/** Protections and flags of `mmap` (sys/mman.h, Linux). */
export const PROT = { NONE: 0, READ: 1, WRITE: 2, EXEC: 4 } as const;
/** Flags of `mmap` (sys/mman.h, Linux). */
export const MAP = { SHARED: 1, PRIVATE: 2, ANONYMOUS: 0x20, NORESERVE: 0x4000 } as const;

/** Origins of `lseek` (unistd.h). */
export const SEEK = { END: 2 } as const;

/** Advice to `madvise` (sys/mman.h, Linux). */
export const MADV = { HUGEPAGE: 14, POPULATE_WRITE: 23 } as const;

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

/** Socket families (sys/socket.h, Linux). */
export const AF = { UNIX: 1 } as const;
/** Socket types and flags (sys/socket.h, Linux). */
export const SOCK = { STREAM: 1, SEQPACKET: 5, NONBLOCK: 0o4000, CLOEXEC: 0o2000000 } as const;
/** Levels of socket options and control messages (sys/socket.h, Linux). */
export const SOL = { SOCKET: 1 } as const;
/** Socket options (sys/socket.h, Linux). */
export const SO = { REUSEADDR: 2, ERROR: 4, PEERCRED: 17, ACCEPTCONN: 30 } as const;
/** Directions of a connection that shutdown() ends (sys/socket.h). */
export const SHUT = { WR: 1, RDWR: 2 } as const;
/** Types of control messages (sys/socket.h, Linux). */
export const SCM = { RIGHTS: 1 } as const;
/** Flags of sendmsg() and recvmsg() (sys/socket.h, Linux). */
export const MSG = { CTRUNC: 8, TRUNC: 0x20, NOSIGNAL: 0x4000, CMSG_CLOEXEC: 0x4000_0000 } as const;
/** Events requested from and returned by poll() (poll.h, Linux). */
export const poll_events = { POLLIN: 1, POLLOUT: 4, POLLNVAL: 0x20 } as const;
/** Flags of eventfd() (sys/eventfd.h, Linux). */
export const EFD = { CLOEXEC: 0o2000000 } as const;
/** Flags of epoll_create1() (sys/epoll.h, Linux). */
export const EPOLL = { CLOEXEC: 0o2000000 } as const;
/** Operations of epoll_ctl() (sys/epoll.h, Linux). */
export const EPOLL_CTL = { ADD: 1, DEL: 2 } as const;
/** Events that epoll_wait() waits for (sys/epoll.h, Linux). */
export const epoll_events = { EPOLLIN: 1 } as const;
/** Flags of memfd_create() (sys/mman.h, Linux). */
export const MFD = { CLOEXEC: 1 } as const;

/** Values of `errno` that are not errors here, or whose names messages say (errno.h, Linux on both architectures). */
export const errno = {
  EPERM: 1,
  ENOENT: 2,
  ESRCH: 3,
  EINTR: 4,
  EIO: 5,
  EBADF: 9,
  EAGAIN: 11,
  ENOMEM: 12,
  EACCES: 13,
  EFAULT: 14,
  EBUSY: 16,
  EEXIST: 17,
  EXDEV: 18,
  ENODEV: 19,
  ENOTDIR: 20,
  EISDIR: 21,
  EINVAL: 22,
  ENFILE: 23,
  EMFILE: 24,
  ETXTBSY: 26,
  EFBIG: 27,
  ENOSPC: 28,
  EROFS: 30,
  EPIPE: 32,
  ENAMETOOLONG: 36,
  ENOSYS: 38,
  ELOOP: 40,
  EMSGSIZE: 90,
  EOPNOTSUPP: 95,
  EADDRINUSE: 98,
  EADDRNOTAVAIL: 99,
  ENETDOWN: 100,
  ENETUNREACH: 101,
  ECONNABORTED: 103,
  ECONNRESET: 104,
  ENOBUFS: 105,
  ENOTCONN: 107,
  ETOOMANYREFS: 109,
  ETIMEDOUT: 110,
  ECONNREFUSED: 111,
  EHOSTUNREACH: 113,
  EINPROGRESS: 115,
  ESTALE: 116,
  EDQUOT: 122,
} as const;

/** `struct sockaddr_un` (sys/un.h). */
export const sockaddr_un = {
  sun_family: "u16",
  sun_path: ["u8", 108],
} as const satisfies StructDescription;

/** `struct iovec` (sys/uio.h). */
export const iovec = {
  iov_base: "ptr",
  iov_len: "size",
} as const satisfies StructDescription;

/** `struct msghdr` (sys/socket.h). */
export const msghdr = {
  msg_name: "ptr",
  msg_namelen: "u32",
  msg_iov: "ptr", // struct iovec *
  msg_iovlen: "size",
  msg_control: "ptr", // struct cmsghdr *, each at a multiple of 8
  msg_controllen: "size",
  msg_flags: "i32",
} as const satisfies StructDescription;

/** `struct cmsghdr` (sys/socket.h); its data follows. */
export const cmsghdr = {
  cmsg_len: "size",
  cmsg_level: "i32",
  cmsg_type: "i32",
} as const satisfies StructDescription;

/** `struct ucred` (sys/socket.h). */
export const ucred = {
  pid: "i32",
  uid: "u32",
  gid: "u32",
} as const satisfies StructDescription;

/** `struct timespec` (time.h). */
export const timespec = {
  tv_sec: "i64",
  tv_nsec: "i64",
} as const satisfies StructDescription;

/** `struct itimerspec` (time.h). */
export const itimerspec = {
  it_interval: timespec,
  it_value: timespec,
} as const satisfies StructDescription;

/** `struct pollfd` (poll.h). */
export const pollfd = {
  fd: "i32",
  events: "i16",
  revents: "i16",
} as const satisfies StructDescription;
