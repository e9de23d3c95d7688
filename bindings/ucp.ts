/**
 * UCX, functions: libucp and the one function of libucs that is needed to describe a status. Their structs and
 * constants are in `ucp_types.ts`.
 *
 * Written against the headers of UCX 1.13.1 to 1.22. Two types are passed in an unusual way. `ucs_status_t` is a packed
 * enum of one byte: the upper bits of the register that returns it are undefined. `ucs_status_ptr_t` is 0 (completed,
 * without a request), a status from -1 to -100 (failed), or the address of a request: the sign of a signed 64-bit
 * integer tells the three apart. If the request is in our memory, whose address is known, the lower half says as much:
 * that is a number in JavaScript instead of a new bigint.
 *
 * @module
 */
import type { SymbolTable } from "./abi.ts";

/** Functions of libucp. */
export const ucp = {
  // Functions that the first UCX context needs.
  opening: {
    // void ucp_get_version(unsigned *major_version, unsigned *minor_version, unsigned *release_number);
    ucp_get_version: { args: ["ptr", "ptr", "ptr"], returns: "void" },
    // const char *ucp_get_version_string(void);
    ucp_get_version_string: { args: [], returns: "ptr" },
    // ucs_status_t ucp_config_read(const char *env_prefix, const char *filename, ucp_config_t **config_p);
    ucp_config_read: { args: ["ptr", "ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_config_modify(ucp_config_t *config, const char *name, const char *value);
    ucp_config_modify: { args: ["ptr", "buffer", "buffer"], returns: "i8" },
    // void ucp_config_release(ucp_config_t *config);
    ucp_config_release: { args: ["ptr"], returns: "void" },
    // The header's ucp_init() is an inline function over this one.
    // ucs_status_t ucp_init_version(unsigned api_major_version, unsigned api_minor_version,
    //   const ucp_params_t *params, const ucp_config_t *config, ucp_context_h *context_p);
    ucp_init_version: { args: ["u32", "u32", "ptr", "ptr", "ptr"], returns: "i8" },
    // void ucp_cleanup(ucp_context_h context_p);
    ucp_cleanup: { args: ["ptr"], returns: "void" },
    // ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t *params, ucp_worker_h *worker_p);
    ucp_worker_create: { args: ["ptr", "ptr", "ptr"], returns: "i8" },
  },
  // Queries of the library and its objects. A FILE comes from fmemopen().
  information: {
    // ucs_status_t ucp_lib_query(ucp_lib_attr_t *attr);
    ucp_lib_query: { args: ["ptr"], returns: "i8" },
    // ucs_status_t ucp_context_query(ucp_context_h context_p, ucp_context_attr_t *attr);
    ucp_context_query: { args: ["ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_worker_query(ucp_worker_h worker, ucp_worker_attr_t *attr);
    ucp_worker_query: { args: ["ptr", "ptr"], returns: "i8" },
    // void ucp_config_print(const ucp_config_t *config, FILE *stream, const char *title,
    //   ucs_config_print_flags_t print_flags);
    ucp_config_print: { args: ["ptr", "ptr", "buffer", "i32"], returns: "void" },
    // void ucp_context_print_info(const ucp_context_h context, FILE *stream);
    ucp_context_print_info: { args: ["ptr", "ptr"], returns: "void" },
    // void ucp_worker_print_info(ucp_worker_h worker, FILE *stream);
    ucp_worker_print_info: { args: ["ptr", "ptr"], returns: "void" },
    // void ucp_ep_print_info(ucp_ep_h ep, FILE *stream);
    ucp_ep_print_info: { args: ["ptr", "ptr"], returns: "void" },
  },
  worker: {
    // void ucp_worker_destroy(ucp_worker_h worker);
    ucp_worker_destroy: { args: ["ptr"], returns: "void" },
    // unsigned ucp_worker_progress(ucp_worker_h worker);
    ucp_worker_progress: { args: ["ptr"], returns: "u32" },
    // ucs_status_t ucp_worker_get_address(ucp_worker_h worker, ucp_address_t **address_p, size_t *address_length_p);
    ucp_worker_get_address: { args: ["ptr", "ptr", "ptr"], returns: "i8" },
    // void ucp_worker_release_address(ucp_worker_h worker, ucp_address_t *address);
    ucp_worker_release_address: { args: ["ptr", "ptr"], returns: "void" },
    // ucs_status_t ucp_worker_address_query(ucp_address_t *address, ucp_worker_address_attr_t *attr);
    ucp_worker_address_query: { args: ["ptr", "ptr"], returns: "i8" },
  },
  // Sleeping workers: these need UCP_FEATURE.WAKEUP.
  wakeup: {
    // ucs_status_t ucp_worker_get_efd(ucp_worker_h worker, int *fd);
    ucp_worker_get_efd: { args: ["ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_worker_arm(ucp_worker_h worker);
    ucp_worker_arm: { args: ["ptr"], returns: "i8" },
    // ucs_status_t ucp_worker_signal(ucp_worker_h worker);
    ucp_worker_signal: { args: ["ptr"], returns: "i8" },
    // ucs_status_t ucp_worker_wait(ucp_worker_h worker);
    ucp_worker_wait: { args: ["ptr"], returns: "i8" },
    // void ucp_worker_wait_mem(ucp_worker_h worker, void *address);
    ucp_worker_wait_mem: { args: ["ptr", "ptr"], returns: "void" },
  },
  listener: {
    // ucs_status_t ucp_listener_create(ucp_worker_h worker, const ucp_listener_params_t *params,
    //   ucp_listener_h *listener_p);
    ucp_listener_create: { args: ["ptr", "ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_listener_query(ucp_listener_h listener, ucp_listener_attr_t *attr);
    ucp_listener_query: { args: ["ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_listener_reject(ucp_listener_h listener, ucp_conn_request_h conn_request);
    ucp_listener_reject: { args: ["ptr", "ptr"], returns: "i8" },
    // void ucp_listener_destroy(ucp_listener_h listener);
    ucp_listener_destroy: { args: ["ptr"], returns: "void" },
    // ucs_status_t ucp_conn_request_query(ucp_conn_request_h conn_request, ucp_conn_request_attr_t *attr);
    ucp_conn_request_query: { args: ["ptr", "ptr"], returns: "i8" },
  },
  endpoint: {
    // ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p);
    ucp_ep_create: { args: ["ptr", "ptr", "ptr"], returns: "i8" },
    // ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param);
    ucp_ep_close_nbx: { args: ["ptr", "ptr"], returns: "i64" },
    // ucs_status_t ucp_ep_query(ucp_ep_h ep, ucp_ep_attr_t *attr);
    ucp_ep_query: { args: ["ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_ep_evaluate_perf(ucp_ep_h ep, const ucp_ep_evaluate_perf_param_t *param,
    //   ucp_ep_evaluate_perf_attr_t *attr);
    ucp_ep_evaluate_perf: { args: ["ptr", "ptr", "ptr"], returns: "i8" },
    // ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param);
    ucp_ep_flush_nbx: { args: ["ptr", "ptr"], returns: "i64" },
    // ucs_status_ptr_t ucp_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t *param);
    ucp_worker_flush_nbx: { args: ["ptr", "ptr"], returns: "i64" },
  },
  // Polling a request without a callback.
  request: {
    // ucs_status_t ucp_request_check_status(void *request);
    ucp_request_check_status: { args: ["ptr"], returns: "i8" },
    // void ucp_request_cancel(ucp_worker_h worker, void *request);
    ucp_request_cancel: { args: ["ptr", "ptr"], returns: "void" },
    // void ucp_request_free(void *request);
    ucp_request_free: { args: ["ptr"], returns: "void" },
    // ucs_status_t ucp_tag_recv_request_test(void *request, ucp_tag_recv_info_t *info);
    ucp_tag_recv_request_test: { args: ["ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_stream_recv_request_test(void *request, size_t *length_p);
    ucp_stream_recv_request_test: { args: ["ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_request_query(void *request, ucp_request_attr_t *attr);
    ucp_request_query: { args: ["ptr", "ptr"], returns: "i8" },
  },
  tag: {
    // ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
    //   const ucp_request_param_t *param);
    ucp_tag_send_nbx: { args: ["ptr", "ptr", "size", "u64", "ptr"], returns: "i32" },
    // ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
    //   const ucp_request_param_t *param);
    ucp_tag_send_sync_nbx: { args: ["ptr", "ptr", "size", "u64", "ptr"], returns: "i64" },
    // ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
    //   ucp_tag_t tag_mask, const ucp_request_param_t *param);
    ucp_tag_recv_nbx: { args: ["ptr", "ptr", "size", "u64", "u64", "ptr"], returns: "i32" },
    // ucp_tag_message_h ucp_tag_probe_nb(ucp_worker_h worker, ucp_tag_t tag, ucp_tag_t tag_mask, int remove,
    //   ucp_tag_recv_info_t *info);
    ucp_tag_probe_nb: { args: ["ptr", "u64", "u64", "i32", "ptr"], returns: "ptr" },
    // ucs_status_ptr_t ucp_tag_msg_recv_nbx(ucp_worker_h worker, void *buffer, size_t count,
    //   ucp_tag_message_h message, const ucp_request_param_t *param);
    ucp_tag_msg_recv_nbx: { args: ["ptr", "ptr", "size", "ptr", "ptr"], returns: "i32" },
  },
  // The same for JavaScript memory, whose address would be a new bigint for each call.
  tagOwn: {
    // ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
    //   const ucp_request_param_t *param);
    ucp_tag_send_nbx: { args: ["ptr", "memory", "size", "u64", "ptr"], returns: "i32" },
    // ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
    //   ucp_tag_t tag_mask, const ucp_request_param_t *param);
    ucp_tag_recv_nbx: { args: ["ptr", "memory", "size", "u64", "u64", "ptr"], returns: "i32" },
  },
  stream: {
    // ucs_status_ptr_t ucp_stream_send_nbx(ucp_ep_h ep, const void *buffer, size_t count,
    //   const ucp_request_param_t *param);
    ucp_stream_send_nbx: { args: ["ptr", "ptr", "size", "ptr"], returns: "i64" },
    // ucs_status_ptr_t ucp_stream_recv_nbx(ucp_ep_h ep, void *buffer, size_t count, size_t *length,
    //   const ucp_request_param_t *param);
    ucp_stream_recv_nbx: { args: ["ptr", "ptr", "size", "ptr", "ptr"], returns: "i64" },
    // ucs_status_ptr_t ucp_stream_recv_data_nb(ucp_ep_h ep, size_t *length);
    ucp_stream_recv_data_nb: { args: ["ptr", "ptr"], returns: "i64" },
    // void ucp_stream_data_release(ucp_ep_h ep, void *data);
    ucp_stream_data_release: { args: ["ptr", "ptr"], returns: "void" },
    // ssize_t ucp_stream_worker_poll(ucp_worker_h worker, ucp_stream_poll_ep_t *poll_eps, size_t max_eps,
    //   unsigned flags);
    ucp_stream_worker_poll: { args: ["ptr", "ptr", "size", "u32"], returns: "i64" },
  },
  activeMessage: {
    // ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h worker, const ucp_am_handler_param_t *param);
    ucp_worker_set_am_recv_handler: { args: ["ptr", "ptr"], returns: "i8" },
    // ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
    //   const void *buffer, size_t count, const ucp_request_param_t *param);
    ucp_am_send_nbx: { args: ["ptr", "u32", "ptr", "size", "ptr", "size", "ptr"], returns: "i64" },
    // ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *data_desc, void *buffer, size_t count,
    //   const ucp_request_param_t *param);
    ucp_am_recv_data_nbx: { args: ["ptr", "ptr", "ptr", "size", "ptr"], returns: "i64" },
    // void ucp_am_data_release(ucp_worker_h worker, void *data);
    ucp_am_data_release: { args: ["ptr", "ptr"], returns: "void" },
  },
  // Registered memory and remote keys.
  memory: {
    // ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memh_p);
    ucp_mem_map: { args: ["ptr", "ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_mem_unmap(ucp_context_h context, ucp_mem_h memh);
    ucp_mem_unmap: { args: ["ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_mem_query(const ucp_mem_h memh, ucp_mem_attr_t *attr);
    ucp_mem_query: { args: ["ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_mem_advise(ucp_context_h context, ucp_mem_h memh, ucp_mem_advise_params_t *params);
    ucp_mem_advise: { args: ["ptr", "ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_rkey_pack(ucp_context_h context, ucp_mem_h memh, void **rkey_buffer_p, size_t *size_p);
    ucp_rkey_pack: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i8" },
    // void ucp_rkey_buffer_release(void *rkey_buffer);
    ucp_rkey_buffer_release: { args: ["ptr"], returns: "void" },
    // ucs_status_t ucp_ep_rkey_unpack(ucp_ep_h ep, const void *rkey_buffer, ucp_rkey_h *rkey_p);
    ucp_ep_rkey_unpack: { args: ["ptr", "ptr", "ptr"], returns: "i8" },
    // ucs_status_t ucp_rkey_ptr(ucp_rkey_h rkey, uint64_t raddr, void **addr_p);
    ucp_rkey_ptr: { args: ["ptr", "u64", "ptr"], returns: "i8" },
    // void ucp_rkey_destroy(ucp_rkey_h rkey);
    ucp_rkey_destroy: { args: ["ptr"], returns: "void" },
    // ucs_status_t ucp_memh_pack(ucp_mem_h memh, const ucp_memh_pack_params_t *params, void **buffer_p,
    //   size_t *buffer_size_p);
    ucp_memh_pack: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i8", optional: true },
    // void ucp_memh_buffer_release(void *buffer, const ucp_memh_buffer_release_params_t *params);
    ucp_memh_buffer_release: { args: ["ptr", "ptr"], returns: "void", optional: true },
    // ucs_status_t ucp_rkey_compare(ucp_worker_h worker, ucp_rkey_h rkey1, ucp_rkey_h rkey2,
    //   const ucp_rkey_compare_params_t *params, int *result);
    ucp_rkey_compare: { args: ["ptr", "ptr", "ptr", "ptr", "ptr"], returns: "i8", optional: true },
  },
  // Remote memory access.
  remote: {
    // ucs_status_ptr_t ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count, uint64_t remote_addr,
    //   ucp_rkey_h rkey, const ucp_request_param_t *param);
    ucp_put_nbx: { args: ["ptr", "ptr", "size", "u64", "ptr", "ptr"], returns: "i64" },
    // ucs_status_ptr_t ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
    //   const ucp_request_param_t *param);
    ucp_get_nbx: { args: ["ptr", "ptr", "size", "u64", "ptr", "ptr"], returns: "i64" },
    // ucs_status_ptr_t ucp_atomic_op_nbx(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer, size_t count,
    //   uint64_t remote_addr, ucp_rkey_h rkey, const ucp_request_param_t *param);
    ucp_atomic_op_nbx: { args: ["ptr", "i32", "ptr", "size", "u64", "ptr", "ptr"], returns: "i64" },
  },
  datatype: {
    // ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t *ops, void *context, ucp_datatype_t *datatype_p);
    ucp_dt_create_generic: { args: ["ptr", "ptr", "ptr"], returns: "i8" },
    // void ucp_dt_destroy(ucp_datatype_t datatype);
    ucp_dt_destroy: { args: ["u64"], returns: "void" },
    // ucs_status_t ucp_dt_query(ucp_datatype_t datatype, ucp_datatype_attr_t *attr);
    ucp_dt_query: { args: ["u64", "ptr"], returns: "i8", optional: true },
  },
} as const satisfies SymbolTable;

/** Functions of libucs, which libucp loads. */
export const ucs = {
  status: {
    // const char *ucs_status_string(ucs_status_t status);
    ucs_status_string: { args: ["i8"], returns: "ptr" },
  },
} as const satisfies SymbolTable;

/** API version of these tables, for ucp_init_version(): the oldest that has every required function. */
export const UCP_API = { major: 1, minor: 13 } as const;
