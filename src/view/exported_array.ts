/**
 * The part of a view that exports it to other libraries, by each protocol.
 *
 * @module
 */
import { type ArrowDeviceArray, numbersToArrow, type ToArrowOptions } from "../cdata/mod.ts";
import {
  type ArrayInterface,
  type CudaArrayInterface,
  dlpackDevice,
  type DlpackTensor,
  toArrayInterface,
  toCudaArrayInterface,
  toDlpack,
  type ToDlpackOptions,
} from "../dlpack/mod.ts";
import { type DTypeName, none } from "../layout/mod.ts";
import { ElementArray } from "./element_array.ts";

/** Exports of a view to other libraries: without a copy unless it is asked for, or the memory ends with this Worker. */
export abstract class ExportedArray<D extends DTypeName = DTypeName> extends ElementArray<D> {
  /** See that of {@linkcode ShapedArray}. */
  protected constructor() {
    super();
  }

  /**
   * Exports the array by DLPack. The memory stays allocated until the consumer releases it.
   *
   * @throws {ExchangeError} if DLPack cannot express this view, or cannot meet the consumer's request
   */
  toDlpack(options: ToDlpackOptions = none): DlpackTensor {
    return toDlpack(this, options);
  }

  /** The DLPack protocol, as other libraries call it. */
  __dlpack__(options: ToDlpackOptions = none): DlpackTensor {
    return this.toDlpack(options);
  }

  /** DLPack's device type and number: `[1, 0]` for host memory, `[2, n]` for CUDA device n. */
  __dlpack_device__(): [type: number, id: number] {
    return dlpackDevice(this);
  }

  /**
   * Describes device memory by the CUDA Array Interface, version 3. The view still owns the memory: a consumer keeps
   * the view's buffer open, and orders its work on the `stream` that the description names.
   *
   * @throws {ExchangeError} for host memory, and for an element type without a type string
   */
  toCudaArrayInterface(): CudaArrayInterface {
    return toCudaArrayInterface(this);
  }

  /** The CUDA Array Interface, as other libraries look it up; undefined for host memory. */
  get __cuda_array_interface__(): CudaArrayInterface | undefined {
    return this.device === null ? undefined : this.toCudaArrayInterface();
  }

  /** NumPy's array interface, as other libraries look it up; undefined for device memory. */
  get __array_interface__(): ArrayInterface | undefined {
    return this.device === null ? toArrayInterface(this) : undefined;
  }

  /**
   * Exports the array by the Arrow C device interface, as an array of numbers; every axis after the
   * first becomes a fixed-size list. The memory stays allocated until the consumer releases it.
   *
   * @throws {ExchangeError} if Arrow cannot express this view: elements not in C order, or a type that Arrow lacks
   */
  toArrowDevice(options: ToArrowOptions = none): ArrowDeviceArray {
    return numbersToArrow(this, options, "device");
  }

  /** The Arrow C device protocol, as other libraries call it. */
  __arrow_c_device_array__(options: ToArrowOptions = none): ArrowDeviceArray {
    return numbersToArrow(this, options, "device");
  }

  /** The Arrow C data protocol, as other libraries call it. @throws {ExchangeError} for device memory */
  __arrow_c_array__(options: ToArrowOptions = none): ArrowDeviceArray {
    return numbersToArrow(this, options, "host");
  }
}
