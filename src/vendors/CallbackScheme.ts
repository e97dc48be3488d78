import type { Effect } from "effect"
import type { InboundCallback } from "../domain/Callback.ts"
import type { VendorError } from "./VendorError.ts"

/** The signature of a callback. */
export interface CallbackSignature {
  readonly signedAtSeconds: number
  /** The signed bytes, unique to one attempt of one callback. */
  readonly message: Uint8Array
  /** Several while a vendor rotates its key. */
  readonly signatures: ReadonlyArray<Uint8Array>
}

/** How a vendor's callbacks are verified. ADR 0107. */
export interface CallbackScheme {
  /**
   * Published at a URL, or fetched with the credentials of the account. `None`: the vendor signs nothing, and a
   * callback is authenticated only by its secret URL.
   */
  readonly keys:
    | { readonly _tag: "None" }
    | {
        readonly _tag: "Published"
        readonly url: string
        readonly parse: (bytes: Uint8Array) => ReadonlyArray<string>
      }
    | {
        readonly _tag: "OfAccount"
        readonly fetch: Effect.Effect<ReadonlyArray<string>, VendorError>
      }
  /** `undefined` when the callback has no signature of this scheme. */
  readonly readSignature: (callback: InboundCallback) => CallbackSignature | undefined
  readonly verify: (signature: CallbackSignature, key: string) => boolean
}

/** The scheme of a vendor that does not sign its callbacks. docs/vendors-as-files.md#callbacks */
export const unsigned: CallbackScheme = {
  keys: { _tag: "None" },
  readSignature: () => undefined,
  verify: () => false
}

/** Parses Unix seconds as vendors write them. */
export const secondsIn = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,12}$/u.test(text) ? Number(text) : undefined
