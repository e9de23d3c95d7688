/**
 * UCX, structs and constants. The functions are in `ucp.ts`.
 *
 * No field moved between UCX 1.13.1 and 1.22: structs only grew, and a `field_mask` says which fields the caller has
 * set or requests. So every struct is described at its largest known size, and a bit of `field_mask` may be set only if
 * the running library knows it (`UCP_SINCE`). The masks are keyed by field name, so that code can derive them from the
 * fields passed. Constants that go into a 64-bit field are bigint, as the field itself is.
 *
 * @module
 */
import type { StructDescription } from "./abi.ts";

/** A socket address and its length. */
export const ucs_sock_addr_t = {
  addr: "ptr", // const struct sockaddr *
  addrlen: "u32",
} as const satisfies StructDescription;

/** A set of CPUs, one bit each. */
export const ucs_cpu_set_t = {
  ucs_bits: ["u64", 16],
} as const satisfies StructDescription;

/** Callback for a failed endpoint. */
export const ucp_err_handler_t = {
  cb: "ptr", // ucp_err_handler_cb_t
  arg: "ptr", // void *
} as const satisfies StructDescription;

/** Callback for an accepted endpoint. */
export const ucp_listener_accept_handler_t = {
  cb: "ptr", // ucp_listener_accept_callback_t
  arg: "ptr", // void *
} as const satisfies StructDescription;

/** Callback for a connection request, to be accepted or rejected later. */
export const ucp_listener_conn_handler_t = {
  cb: "ptr", // ucp_listener_conn_callback_t
  arg: "ptr", // void *
} as const satisfies StructDescription;

/** One transport of an endpoint. */
export const ucp_transport_entry_t = {
  transport_name: "ptr", // const char *
  device_name: "ptr", // const char *
} as const satisfies StructDescription;

/** Array that ucp_ep_query() fills; `entry_size` is the size of the caller's `ucp_transport_entry_t`. */
export const ucp_transports_t = {
  entries: "ptr", // ucp_transport_entry_t *
  num_entries: "u32",
  entry_size: "size",
} as const satisfies StructDescription;

/** Parameters of a context. */
export const ucp_params_t = {
  field_mask: "u64",
  features: "u64",
  request_size: "size",
  request_init: "ptr", // ucp_request_init_callback_t
  request_cleanup: "ptr", // ucp_request_cleanup_callback_t
  tag_sender_mask: "u64",
  mt_workers_shared: "i32",
  estimated_num_eps: "size",
  estimated_num_ppn: "size",
  name: "ptr", // const char *
  node_local_id: "size", // since 1.20
} as const satisfies StructDescription;

/** Result of ucp_lib_query(). */
export const ucp_lib_attr_t = {
  field_mask: "u64",
  max_thread_level: "i32", // ucs_thread_mode_t
} as const satisfies StructDescription;

/** Result of ucp_context_query(). */
export const ucp_context_attr_t = {
  field_mask: "u64",
  request_size: "size",
  thread_mode: "i32", // ucs_thread_mode_t
  memory_types: "u64",
  name: ["u8", 32],
  device_counter_size: "size", // since 1.20
} as const satisfies StructDescription;

/** Parameters of a worker. */
export const ucp_worker_params_t = {
  field_mask: "u64",
  thread_mode: "i32", // ucs_thread_mode_t
  cpu_mask: ucs_cpu_set_t,
  events: "u32",
  user_data: "ptr", // void *
  event_fd: "i32",
  flags: "u64",
  name: "ptr", // const char *
  am_alignment: "size",
  client_id: "u64",
} as const satisfies StructDescription;

/** Result of ucp_worker_query(). */
export const ucp_worker_attr_t = {
  field_mask: "u64",
  thread_mode: "i32", // ucs_thread_mode_t
  address_flags: "u32",
  address: "ptr", // ucp_address_t *
  address_length: "size",
  max_am_header: "size",
  name: ["u8", 32],
  max_debug_string: "size",
} as const satisfies StructDescription;

/** Result of ucp_worker_address_query(). */
export const ucp_worker_address_attr_t = {
  field_mask: "u64",
  worker_uid: "u64",
} as const satisfies StructDescription;

/** Parameters of a listener: its address and callbacks. */
export const ucp_listener_params_t = {
  field_mask: "u64",
  sockaddr: ucs_sock_addr_t,
  accept_handler: ucp_listener_accept_handler_t,
  conn_handler: ucp_listener_conn_handler_t,
} as const satisfies StructDescription;

/** Result of ucp_listener_query(). */
export const ucp_listener_attr_t = {
  field_mask: "u64",
  sockaddr: ["u8", 128], // struct sockaddr_storage
} as const satisfies StructDescription;

/** Result of ucp_conn_request_query(). */
export const ucp_conn_request_attr_t = {
  field_mask: "u64",
  client_address: ["u8", 128], // struct sockaddr_storage
  client_id: "u64",
} as const satisfies StructDescription;

/** Parameters of an endpoint: its peer, and how it connects. */
export const ucp_ep_params_t = {
  field_mask: "u64",
  address: "ptr", // const ucp_address_t *
  err_mode: "i32", // ucp_err_handling_mode_t
  err_handler: ucp_err_handler_t,
  user_data: "ptr", // void *
  flags: "u32",
  sockaddr: ucs_sock_addr_t,
  conn_request: "ptr", // ucp_conn_request_h
  name: "ptr", // const char *
  local_sockaddr: ucs_sock_addr_t,
} as const satisfies StructDescription;

/** Result of ucp_ep_query(). */
export const ucp_ep_attr_t = {
  field_mask: "u64",
  name: ["u8", 32],
  local_sockaddr: ["u8", 128], // struct sockaddr_storage
  remote_sockaddr: ["u8", 128], // struct sockaddr_storage
  transports: ucp_transports_t, // since 1.14
  user_data: "ptr", // since 1.18; void *
} as const satisfies StructDescription;

/** Input of ucp_ep_evaluate_perf(). */
export const ucp_ep_evaluate_perf_param_t = {
  field_mask: "u64",
  message_size: "size",
} as const satisfies StructDescription;

/** Result of ucp_ep_evaluate_perf(), in seconds. */
export const ucp_ep_evaluate_perf_attr_t = {
  field_mask: "u64",
  estimated_time: "f64",
} as const satisfies StructDescription;

/**
 * Options of one operation. All zero is valid: bytes, no callback, a request only if the operation cannot complete
 * immediately.
 */
export const ucp_request_param_t = {
  op_attr_mask: "u32",
  flags: "u32",
  request: "ptr", // void *
  cb: "ptr", // the callback of the operation: ucp_send_nbx_callback_t, ucp_tag_recv_nbx_callback_t, ...
  datatype: "u64",
  user_data: "ptr", // void *
  reply_buffer: "ptr", // void *
  memory_type: "i32", // ucs_memory_type_t
  recv_info: "ptr", // union of size_t *length and ucp_tag_recv_info_t *tag_info
  memh: "ptr", // ucp_mem_h
  remote_datatype: "u64", // since 1.22
  remote: "ptr", // since 1.22; const void *
  remote_count: "size", // since 1.22
} as const satisfies StructDescription;

/** Result of ucp_request_query(). `status` is one byte wide. */
export const ucp_request_attr_t = {
  field_mask: "u64",
  debug_string: "ptr", // char *
  debug_string_size: "size",
  status: "i8",
  mem_type: "i32", // ucs_memory_type_t
} as const satisfies StructDescription;

/** Result of a tag receive. */
export const ucp_tag_recv_info_t = {
  sender_tag: "u64",
  length: "size",
} as const satisfies StructDescription;

/** An endpoint with pending stream data. */
export const ucp_stream_poll_ep_t = {
  ep: "ptr", // ucp_ep_h
  user_data: "ptr", // void *
  flags: "u32",
  reserved: ["u8", 16],
} as const satisfies StructDescription;

/** Handler of an active message id. */
export const ucp_am_handler_param_t = {
  field_mask: "u64",
  id: "u32",
  flags: "u32",
  cb: "ptr", // ucp_am_recv_callback_t
  arg: "ptr", // void *
} as const satisfies StructDescription;

/** Parameters passed to a handler of active messages. */
export const ucp_am_recv_param_t = {
  recv_attr: "u64",
  reply_ep: "ptr", // ucp_ep_h
} as const satisfies StructDescription;

/** Memory to register or allocate. */
export const ucp_mem_map_params_t = {
  field_mask: "u64",
  address: "ptr", // void *
  length: "size",
  flags: "u32",
  prot: "u32",
  memory_type: "i32", // ucs_memory_type_t
  exported_memh_buffer: "ptr", // since 1.14; const void *
} as const satisfies StructDescription;

/** Result of ucp_mem_query(). */
export const ucp_mem_attr_t = {
  field_mask: "u64",
  address: "ptr", // void *
  length: "size",
  mem_type: "i32", // ucs_memory_type_t
} as const satisfies StructDescription;

/** Advice of ucp_mem_advise(). */
export const ucp_mem_advise_params_t = {
  field_mask: "u64",
  address: "ptr", // void *
  length: "size",
  advice: "i32", // ucp_mem_advice_t
} as const satisfies StructDescription;

/** Options of ucp_memh_pack(), since 1.14. */
export const ucp_memh_pack_params_t = {
  field_mask: "u64",
  flags: "u64",
} as const satisfies StructDescription;

/** Options of ucp_memh_buffer_release(), since 1.14. */
export const ucp_memh_buffer_release_params_t = {
  field_mask: "u64",
} as const satisfies StructDescription;

/** Options of ucp_rkey_compare(), since 1.16. */
export const ucp_rkey_compare_params_t = {
  field_mask: "u64",
} as const satisfies StructDescription;

/** One part of a scattered buffer (datatype UCP_DATATYPE.IOV). */
export const ucp_dt_iov_t = {
  buffer: "ptr", // void *
  length: "size",
} as const satisfies StructDescription;

/** Callbacks of a user-defined datatype. */
export const ucp_generic_dt_ops_t = {
  start_pack: "ptr", // callback
  start_unpack: "ptr", // callback
  packed_size: "ptr", // callback
  pack: "ptr", // callback
  unpack: "ptr", // callback
  finish: "ptr", // callback
} as const satisfies StructDescription;

/** Input and result of ucp_dt_query(), since 1.14. */
export const ucp_datatype_attr_t = {
  field_mask: "u64",
  packed_size: "size",
  buffer: "ptr", // const void *
  count: "size",
} as const satisfies StructDescription;

/** Local side of a scatter-gather list (datatype UCP_DATATYPE.SGL), since 1.22. */
export const ucp_dt_local_sgl_t = {
  field_mask: "u64",
  buffers: "ptr", // void * const *
  lengths: "ptr", // const size_t *
  memhs: "ptr", // ucp_mem_h const *
  counts: "ptr", // const size_t *
  strides: "ptr", // const size_t *
} as const satisfies StructDescription;

/** Remote side of a scatter-gather list, since 1.22. */
export const ucp_dt_remote_sgl_t = {
  field_mask: "u64",
  remote_addrs: "ptr", // const uint64_t *
  lengths: "ptr", // const size_t *
  rkeys: "ptr", // ucp_rkey_h const *
} as const satisfies StructDescription;

/** The number of an IPv4 address (netinet/in.h), in network byte order. */
export const in_addr = {
  s_addr: "u32",
} as const satisfies StructDescription;

/** IPv4 address and port (netinet/in.h), both in network byte order. */
export const sockaddr_in = {
  sin_family: "u16", // AF
  sin_port: "u16",
  sin_addr: in_addr,
  sin_zero: ["u8", 8],
} as const satisfies StructDescription;

/** IPv6 address and port (netinet/in.h), both in network byte order. */
export const sockaddr_in6 = {
  sin6_family: "u16", // AF
  sin6_port: "u16",
  sin6_flowinfo: "u32",
  sin6_addr: ["u8", 16],
  sin6_scope_id: "u32",
} as const satisfies StructDescription;

/** Address families (sys/socket.h, Linux). */
export const AF = { INET: 2, INET6: 10 } as const;

/** Bits of `field_mask` in ucp_params_t. */
export const UCP_PARAMS_FIELD = {
  features: 1n,
  request_size: 2n,
  request_init: 4n,
  request_cleanup: 8n,
  tag_sender_mask: 16n,
  mt_workers_shared: 32n,
  estimated_num_eps: 64n,
  estimated_num_ppn: 128n,
  name: 0x100n,
  node_local_id: 0x200n, // since 1.20
} as const;

/** Bits of `field_mask` in ucp_lib_attr_t. */
export const UCP_LIB_ATTR_FIELD = { max_thread_level: 1n } as const;

/** Bits of `field_mask` in ucp_context_attr_t. */
export const UCP_CONTEXT_ATTR_FIELD = {
  request_size: 1n,
  thread_mode: 2n,
  memory_types: 4n,
  name: 8n,
  device_counter_size: 16n, // since 1.20
} as const;

/** Bits of `field_mask` in ucp_worker_params_t. */
export const UCP_WORKER_PARAMS_FIELD = {
  thread_mode: 1n,
  cpu_mask: 2n,
  events: 4n,
  user_data: 8n,
  event_fd: 16n,
  flags: 32n,
  name: 64n,
  am_alignment: 128n,
  client_id: 0x100n,
} as const;

/** Bits of `field_mask` in ucp_worker_attr_t. */
export const UCP_WORKER_ATTR_FIELD = {
  thread_mode: 1n,
  address_flags: 4n,
  address: 2n,
  address_length: 2n,
  max_am_header: 8n,
  name: 16n,
  max_debug_string: 32n,
} as const;

/** Bits of `field_mask` in ucp_worker_address_attr_t. */
export const UCP_WORKER_ADDRESS_ATTR_FIELD = { worker_uid: 1n } as const;

/** Bits of `field_mask` in ucp_listener_params_t. */
export const UCP_LISTENER_PARAMS_FIELD = { sockaddr: 1n, accept_handler: 2n, conn_handler: 4n } as const;

/** Bits of `field_mask` in ucp_listener_attr_t. */
export const UCP_LISTENER_ATTR_FIELD = { sockaddr: 1n } as const;

/** Bits of `field_mask` in ucp_conn_request_attr_t. */
export const UCP_CONN_REQUEST_ATTR_FIELD = { client_address: 1n, client_id: 2n } as const;

/** Bits of `field_mask` in ucp_ep_params_t. */
export const UCP_EP_PARAMS_FIELD = {
  address: 1n,
  err_mode: 2n,
  err_handler: 4n,
  user_data: 8n,
  flags: 32n,
  sockaddr: 16n,
  conn_request: 64n,
  name: 128n,
  local_sockaddr: 0x100n,
} as const;

/** Bits of `field_mask` in ucp_ep_attr_t. */
export const UCP_EP_ATTR_FIELD = {
  name: 1n,
  local_sockaddr: 2n,
  remote_sockaddr: 4n,
  transports: 8n, // since 1.14
  user_data: 16n, // since 1.18
} as const;

/** Bits of `field_mask` in ucp_ep_evaluate_perf_param_t. */
export const UCP_EP_PERF_PARAM_FIELD = { message_size: 1n } as const;

/** Bits of `field_mask` in ucp_ep_evaluate_perf_attr_t. */
export const UCP_EP_PERF_ATTR_FIELD = { estimated_time: 1n } as const;

/** Bits of `op_attr_mask` in ucp_request_param_t. */
export const UCP_REQUEST_PARAM_FIELD = {
  flags: 16,
  request: 1,
  cb: 2,
  datatype: 8,
  user_data: 4,
  reply_buffer: 32,
  memory_type: 64,
  recv_info: 128,
  memh: 0x100,
  remote_datatype: 0x200, // since 1.22
  remote: 0x400, // since 1.22
  remote_count: 0x800, // since 1.22
} as const;

/** Bits of `field_mask` in ucp_request_attr_t. */
export const UCP_REQUEST_ATTR_FIELD = { debug_string: 1n, debug_string_size: 2n, status: 4n, mem_type: 8n } as const;

/** Bits of `field_mask` in ucp_am_handler_param_t. */
export const UCP_AM_HANDLER_PARAM_FIELD = { id: 1n, flags: 2n, cb: 4n, arg: 8n } as const;

/** Bits of `field_mask` in ucp_mem_map_params_t. */
export const UCP_MEM_MAP_PARAMS_FIELD = {
  address: 1n,
  length: 2n,
  flags: 4n,
  prot: 8n,
  memory_type: 16n,
  exported_memh_buffer: 32n, // since 1.14
} as const;

/** Bits of `field_mask` in ucp_mem_attr_t. */
export const UCP_MEM_ATTR_FIELD = { address: 1n, length: 2n, mem_type: 4n } as const;

/** Bits of `field_mask` in ucp_mem_advise_params_t. */
export const UCP_MEM_ADVISE_PARAMS_FIELD = { address: 1n, length: 2n, advice: 4n } as const;

/** Bits of `field_mask` in ucp_memh_pack_params_t. */
export const UCP_MEMH_PACK_PARAMS_FIELD = {
  flags: 1n, // since 1.14
} as const;

/** Bits of `field_mask` in ucp_datatype_attr_t. */
export const UCP_DATATYPE_ATTR_FIELD = {
  packed_size: 1n, // since 1.14
  buffer: 2n, // since 1.14
  count: 4n, // since 1.14
} as const;

/** Bits of `field_mask` in ucp_dt_local_sgl_t. */
export const UCP_DT_LOCAL_SGL_FIELD = {
  buffers: 1n, // since 1.22
  lengths: 2n, // since 1.22
  memhs: 4n, // since 1.22
  counts: 8n, // since 1.22
  strides: 16n, // since 1.22
} as const;

/** Bits of `field_mask` in ucp_dt_remote_sgl_t. */
export const UCP_DT_REMOTE_SGL_FIELD = {
  remote_addrs: 1n, // since 1.22
  lengths: 2n, // since 1.22
  rkeys: 4n, // since 1.22
} as const;

/**
 * First minor version (of 1.x) whose headers have a field; a field not listed here was in 1.13 already. The bit of a
 * field that the running library does not know must stay clear, and so must a bit of `UCP_FEATURE` that it lacks.
 */
export const UCP_SINCE = {
  ucp_context_attr_t: { device_counter_size: 20 },
  ucp_ep_attr_t: { transports: 14, user_data: 18 },
  ucp_mem_map_params_t: { exported_memh_buffer: 14 },
  ucp_params_t: { node_local_id: 20 },
  ucp_request_param_t: { remote_datatype: 22, remote: 22, remote_count: 22 },
} as const;

/** Features requested for a context: `ucp_params_t.features`. */
export const UCP_FEATURE = {
  TAG: 1n,
  RMA: 2n,
  AMO32: 4n,
  AMO64: 8n,
  WAKEUP: 16n,
  STREAM: 32n,
  AM: 64n,
  EXPORTED_MEMH: 128n, // since 1.14
  DEVICE: 0x100n, // since 1.20
} as const;

/** `ucp_worker_params_t.flags`. */
export const UCP_WORKER_FLAG = { IGNORE_REQUEST_LEAK: 1n } as const;

/** Events that wake a worker: `ucp_worker_params_t.events`. */
export const UCP_WAKEUP = {
  RMA: 1,
  AMO: 2,
  TAG_SEND: 4,
  TAG_RECV: 8,
  TX: 0x400,
  RX: 0x800,
  EDGE: 0x10000,
} as const;

/** `ucp_worker_attr_t.address_flags`. */
export const UCP_WORKER_ADDRESS_FLAG = { NET_ONLY: 1 } as const;

/** `ucp_ep_params_t.flags`. */
export const UCP_EP_PARAMS_FLAGS = { CLIENT_SERVER: 1, NO_LOOPBACK: 2, SEND_CLIENT_ID: 4 } as const;

/** `ucp_ep_params_t.err_mode`. */
export const UCP_ERR_HANDLING_MODE = {
  NONE: 0,
  PEER: 1,
  FAILOVER: 2, // since 1.21
} as const;

/** `ucp_request_param_t.flags` of ucp_ep_close_nbx(). */
export const UCP_EP_CLOSE_FLAG = { FORCE: 1 } as const;

/** Flags in `ucp_request_param_t.op_attr_mask`, beside the bits of its fields. */
export const UCP_OP_ATTR_FLAG = {
  NO_IMM_CMPL: 0x10000,
  FAST_CMPL: 0x20000,
  FORCE_IMM_CMPL: 0x40000,
  MULTI_SEND: 0x80000,
} as const;

/** `ucp_request_param_t.flags` of ucp_stream_recv_nbx(). */
export const UCP_STREAM_RECV_FLAG = { WAITALL: 1 } as const;

/** `ucp_request_param_t.flags` of ucp_am_send_nbx(). */
export const UCP_AM_SEND_FLAG = {
  REPLY: 1,
  EAGER: 2,
  RNDV: 4,
  COPY_HEADER: 8, // since 1.14
} as const;

/** `ucp_am_handler_param_t.flags`. */
export const UCP_AM_FLAG = { WHOLE_MSG: 1, PERSISTENT_DATA: 2 } as const;

/** `ucp_am_recv_param_t.recv_attr`: which fields are set, and the kind of data. */
export const UCP_AM_RECV_ATTR = { FIELD_REPLY_EP: 1n, FLAG_DATA: 0x10000n, FLAG_RNDV: 0x20000n } as const;

/** `ucp_mem_map_params_t.flags`. */
export const UCP_MEM_MAP = {
  NONBLOCK: 1,
  ALLOCATE: 2,
  FIXED: 4,
  SYMMETRIC_RKEY: 8, // since 1.16
  LOCK: 16, // since 1.18
} as const;

/** `ucp_mem_map_params_t.prot`. */
export const UCP_MEM_MAP_PROT = { LOCAL_READ: 1, LOCAL_WRITE: 2, REMOTE_READ: 0x100, REMOTE_WRITE: 0x200 } as const;

/** `ucp_memh_pack_params_t.flags`. */
export const UCP_MEMH_PACK_FLAG = {
  EXPORT: 1n, // since 1.14
} as const;

/** `ucp_mem_advise_params_t.advice`. */
export const UCP_MADV = { NORMAL: 0, WILLNEED: 1 } as const;

/** `opcode` of ucp_atomic_op_nbx(). */
export const UCP_ATOMIC_OP = {
  ADD: 0,
  SWAP: 1,
  CSWAP: 2,
  AND: 3,
  OR: 4,
  XOR: 5,
} as const;

/** Classes of a `ucp_datatype_t`, and the class's position in it: n contiguous bytes are `n << SHIFT | CONTIG`. */
export const UCP_DATATYPE = {
  CONTIG: 0n,
  STRIDED: 1n,
  IOV: 2n,
  SGL: 4n, // since 1.22
  GENERIC: 7n,
  SHIFT: 3n,
  CLASS_MASK: 7n,
} as const;

/** `thread_mode` of workers and contexts. */
export const UCS_THREAD_MODE = { SINGLE: 0, SERIALIZED: 1, MULTI: 2 } as const;

/** `memory_type` fields. UNKNOWN is omitted: its value changes whenever a type is added (5 in 1.13, 10 in 1.21). */
export const UCS_MEMORY_TYPE = {
  HOST: 0,
  CUDA: 1,
  CUDA_MANAGED: 2,
  ROCM: 3,
  ROCM_MANAGED: 4,
  RDMA: 5, // since 1.16
  ZE_HOST: 6, // since 1.17
  ZE_DEVICE: 7, // since 1.17
  ZE_MANAGED: 8, // since 1.17
  GAUDI: 9, // since 1.21
} as const;

/** `print_flags` of ucp_config_print(). */
export const UCS_CONFIG_PRINT = {
  CONFIG: 1,
  HEADER: 2,
  DOC: 4,
  HIDDEN: 8,
  COMMENT_DEFAULT: 16,
} as const;

/** Status codes, one signed byte. The FIRST and LAST of a range name its bounds, not an error. */
export const ucs_status_t = {
  UCS_OK: 0,
  UCS_INPROGRESS: 1,
  UCS_ERR_NO_MESSAGE: -1,
  UCS_ERR_NO_RESOURCE: -2,
  UCS_ERR_IO_ERROR: -3,
  UCS_ERR_NO_MEMORY: -4,
  UCS_ERR_INVALID_PARAM: -5,
  UCS_ERR_UNREACHABLE: -6,
  UCS_ERR_INVALID_ADDR: -7,
  UCS_ERR_NOT_IMPLEMENTED: -8,
  UCS_ERR_MESSAGE_TRUNCATED: -9,
  UCS_ERR_NO_PROGRESS: -10,
  UCS_ERR_BUFFER_TOO_SMALL: -11,
  UCS_ERR_NO_ELEM: -12,
  UCS_ERR_SOME_CONNECTS_FAILED: -13,
  UCS_ERR_NO_DEVICE: -14,
  UCS_ERR_BUSY: -15,
  UCS_ERR_CANCELED: -16,
  UCS_ERR_SHMEM_SEGMENT: -17,
  UCS_ERR_ALREADY_EXISTS: -18,
  UCS_ERR_OUT_OF_RANGE: -19,
  UCS_ERR_TIMED_OUT: -20,
  UCS_ERR_EXCEEDS_LIMIT: -21,
  UCS_ERR_UNSUPPORTED: -22,
  UCS_ERR_REJECTED: -23,
  UCS_ERR_NOT_CONNECTED: -24,
  UCS_ERR_CONNECTION_RESET: -25,
  UCS_ERR_FIRST_LINK_FAILURE: -40,
  UCS_ERR_LAST_LINK_FAILURE: -59,
  UCS_ERR_FIRST_ENDPOINT_FAILURE: -60,
  UCS_ERR_ENDPOINT_TIMEOUT: -80,
  UCS_ERR_LAST_ENDPOINT_FAILURE: -89,
  UCS_ERR_LAST: -100,
} as const;
