/** UCX's structs, masks and constants in every version from 1.13.1 to 1.22, by `ucp_layout.json`. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import type { StructDescription } from "../../bindings/abi.ts";
import * as types from "../../bindings/ucp_types.ts";
import { UCP_API } from "../../bindings/ucp.ts";
import { cLayout } from "./c_layout.ts";
import { ucpLayout, type UcpStruct } from "./facts.ts";

const ours = new Map<string, unknown>(Object.entries(types));

/** The struct of that name in the bindings. */
function described(name: string): StructDescription {
  const description = ours.get(name);
  assert(typeof description === "object" && description !== null, `${name} is not described`);
  return description as StructDescription;
}

function checkFields(name: string, { fields }: UcpStruct, version: string): void {
  const layout = cLayout(described(name));
  for (const [field, { offset, size, decl }] of Object.entries(fields)) {
    assertEquals(layout.fields[field], { offset, size }, `${name}.${field} (${decl}) in ${version}`);
  }
}

/** A field's name within the name of its mask bit, where it is not the field's own name. */
const BIT_NAMES: { readonly [field: string]: string } = {
  "ucp_worker_attr_t.address_length": "ADDRESS", // one bit covers the address and its length
  "ucp_worker_attr_t.max_debug_string": "MAX_INFO_STRING",
  "ucp_worker_address_attr_t.worker_uid": "UID",
  "ucp_listener_params_t.sockaddr": "SOCK_ADDR",
  "ucp_conn_request_attr_t.client_address": "CLIENT_ADDR",
  "ucp_ep_params_t.address": "REMOTE_ADDRESS",
  "ucp_ep_params_t.err_mode": "ERR_HANDLING_MODE",
  "ucp_ep_params_t.sockaddr": "SOCK_ADDR",
  "ucp_ep_params_t.local_sockaddr": "LOCAL_SOCK_ADDR",
  "ucp_request_param_t.cb": "CALLBACK",
  "ucp_request_attr_t.debug_string": "INFO_STRING",
  "ucp_request_attr_t.debug_string_size": "INFO_STRING_SIZE",
};

/** Every mask: its struct, and the prefix of its bits in C. */
const MASKS: readonly (readonly [mask: string, struct: string, prefix: string])[] = [
  ["UCP_PARAMS_FIELD", "ucp_params_t", "UCP_PARAM_FIELD_"],
  ["UCP_LIB_ATTR_FIELD", "ucp_lib_attr_t", "UCP_LIB_ATTR_FIELD_"],
  ["UCP_CONTEXT_ATTR_FIELD", "ucp_context_attr_t", "UCP_ATTR_FIELD_"],
  ["UCP_WORKER_PARAMS_FIELD", "ucp_worker_params_t", "UCP_WORKER_PARAM_FIELD_"],
  ["UCP_WORKER_ATTR_FIELD", "ucp_worker_attr_t", "UCP_WORKER_ATTR_FIELD_"],
  ["UCP_WORKER_ADDRESS_ATTR_FIELD", "ucp_worker_address_attr_t", "UCP_WORKER_ADDRESS_ATTR_FIELD_"],
  ["UCP_LISTENER_PARAMS_FIELD", "ucp_listener_params_t", "UCP_LISTENER_PARAM_FIELD_"],
  ["UCP_LISTENER_ATTR_FIELD", "ucp_listener_attr_t", "UCP_LISTENER_ATTR_FIELD_"],
  ["UCP_CONN_REQUEST_ATTR_FIELD", "ucp_conn_request_attr_t", "UCP_CONN_REQUEST_ATTR_FIELD_"],
  ["UCP_EP_PARAMS_FIELD", "ucp_ep_params_t", "UCP_EP_PARAM_FIELD_"],
  ["UCP_EP_ATTR_FIELD", "ucp_ep_attr_t", "UCP_EP_ATTR_FIELD_"],
  ["UCP_EP_PERF_PARAM_FIELD", "ucp_ep_evaluate_perf_param_t", "UCP_EP_PERF_PARAM_FIELD_"],
  ["UCP_EP_PERF_ATTR_FIELD", "ucp_ep_evaluate_perf_attr_t", "UCP_EP_PERF_ATTR_FIELD_"],
  ["UCP_REQUEST_PARAM_FIELD", "ucp_request_param_t", "UCP_OP_ATTR_FIELD_"],
  ["UCP_REQUEST_ATTR_FIELD", "ucp_request_attr_t", "UCP_REQUEST_ATTR_FIELD_"],
  ["UCP_AM_HANDLER_PARAM_FIELD", "ucp_am_handler_param_t", "UCP_AM_HANDLER_PARAM_FIELD_"],
  ["UCP_MEM_MAP_PARAMS_FIELD", "ucp_mem_map_params_t", "UCP_MEM_MAP_PARAM_FIELD_"],
  ["UCP_MEM_ATTR_FIELD", "ucp_mem_attr_t", "UCP_MEM_ATTR_FIELD_"],
  ["UCP_MEM_ADVISE_PARAMS_FIELD", "ucp_mem_advise_params_t", "UCP_MEM_ADVISE_PARAM_FIELD_"],
  ["UCP_MEMH_PACK_PARAMS_FIELD", "ucp_memh_pack_params_t", "UCP_MEMH_PACK_PARAM_FIELD_"],
  ["UCP_DATATYPE_ATTR_FIELD", "ucp_datatype_attr_t", "UCP_DATATYPE_ATTR_FIELD_"],
  ["UCP_DT_LOCAL_SGL_FIELD", "ucp_dt_local_sgl_t", "UCP_DT_LOCAL_SGL_FIELD_"],
  ["UCP_DT_REMOTE_SGL_FIELD", "ucp_dt_remote_sgl_t", "UCP_DT_REMOTE_SGL_FIELD_"],
];

/** Constants that the bindings omit: counters, values that move, older spellings, and UCS's own settings. */
const LEFT_OUT = new RegExp([
  "_LAST$",
  "^UCS_MEMORY_TYPE_UNKNOWN$",
  "^UCS_MEM_FLAG_",
  "^UCP_AM_SEND_REPLY$",
  "^UCP_CB_PARAM_FLAG_",
  "^UCP_ATOMIC_(POST|FETCH)_OP_",
  "^UCP_EP_CLOSE_MODE_",
  "^UCS_(LOG_LEVEL|ASYNC_MODE|HANDLE_ERROR|CONFIG_ALLOW_LIST)_",
  "^UCS_(NO|YES|TRY|AUTO)$",
  "^UCS_CONFIG_(OFF|ON|AUTO)$",
].join("|"));

/** Everything that UCX's headers name and the bindings have, by its C name. */
function constants(): Map<string, number> {
  const found = new Map<string, number>();
  for (const [mask, struct, prefix] of MASKS) {
    for (const [field, bit] of Object.entries(described(mask))) {
      const name = prefix + (BIT_NAMES[`${struct}.${field}`] ?? field.toUpperCase());
      assertEquals(found.get(name) ?? Number(bit), Number(bit), name);
      found.set(name, Number(bit));
    }
  }
  for (const [object, members] of ours) {
    if (!/^(UCP|UCS|ucs_status_t)/.test(object) || object === "UCP_SINCE" || object.endsWith("_FIELD")) continue;
    for (const [key, value] of Object.entries(members as Record<string, unknown>)) {
      found.set(key.startsWith("UCS_") ? key : `${object}_${key}`, Number(value));
    }
  }
  return found;
}

test("ucp: every struct of the oldest version is described, and lies as there", () => {
  for (const [name, struct] of Object.entries(ucpLayout.structs)) checkFields(name, struct, ucpLayout.base_version);
});

test("ucp: what each later version appended is described, and lies as there", () => {
  for (const [version, { structs }] of Object.entries(ucpLayout.appended)) {
    for (const [name, struct] of Object.entries(structs)) checkFields(name, struct, version);
  }
});

test("ucp: every struct has the fields and the size of the newest version", () => {
  for (const [name, struct] of Object.entries(ucpLayout.latest.structs)) {
    assertEquals(Object.keys(described(name)), Object.keys(struct.fields), name);
    assertEquals(cLayout(described(name)).size, struct.size, name);
    checkFields(name, struct, "1.22");
  }
});

test("ucp: no struct is smaller than in any version", () => {
  for (const [name, sizes] of Object.entries(ucpLayout.sizes_by_version)) {
    for (const [version, size] of Object.entries(sizes)) {
      assert(cLayout(described(name)).size >= size, `${name} in ${version} has ${size} bytes`);
    }
  }
});

test("ucp: socket addresses have the sizes of the C library", () => {
  assertEquals(cLayout(types.sockaddr_in).size, ucpLayout.sizes["struct sockaddr_in"]);
  assertEquals(cLayout(types.sockaddr_in6).size, ucpLayout.sizes["struct sockaddr_in6"]);
});

test("ucp: every mask has one bit per field of its struct, and every field its bit", () => {
  for (const [mask, struct] of MASKS) {
    const fields = Object.keys(described(struct)).filter((field) => !/^(field_mask|op_attr_mask)$/.test(field));
    assertEquals(Object.keys(described(mask)).toSorted(), fields.toSorted(), mask);
    const big = struct !== "ucp_request_param_t"; // whose mask is a uint32_t
    for (const bit of Object.values(described(mask))) assertEquals(typeof bit, big ? "bigint" : "number", mask);
  }
  const masks = [...ours.keys()].filter((name) => name.endsWith("_FIELD"));
  assertEquals(masks.toSorted(), MASKS.map(([mask]) => mask).toSorted());
});

test("ucp: every constant has its value in every version, and none is missing", () => {
  const found = constants();
  const known = new Map(Object.entries(ucpLayout.enums));
  for (const { enums } of Object.values(ucpLayout.appended)) {
    for (const [name, value] of Object.entries(enums)) known.set(name, value);
  }
  for (const [name, value] of known) {
    if (!LEFT_OUT.test(name) || found.has(name)) assertEquals(found.get(name), value, name);
  }
  for (const name of found.keys()) assert(known.has(name), `${name} is in no version`);
});

test("ucp: UCP_SINCE names exactly the fields that came after the version we speak, and that version", () => {
  const since: Record<string, Record<string, number>> = {};
  for (const [version, { structs }] of Object.entries(ucpLayout.appended)) {
    for (const [name, { fields }] of Object.entries(structs)) {
      if (!(name in ucpLayout.structs)) continue; // an entirely new struct comes with its function
      for (const field of Object.keys(fields)) (since[name] ??= {})[field] = Number(version.split(".")[1]);
    }
  }
  assertEquals<unknown>(types.UCP_SINCE, since);
  assertEquals(ucpLayout.base_version.split(".").slice(0, 2).map(Number), [UCP_API.major, UCP_API.minor]);
});
