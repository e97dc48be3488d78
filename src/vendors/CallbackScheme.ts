import type { Effect } from "effect"
import type { InboundCallback } from "../domain/Callback.ts"
import type { VendorError } from "./VendorError.ts"

/** What a vendor signed, and when. */
export interface Seal {
  readonly signedAtSeconds: number
  /** The bytes under the signature: unique to this attempt of this callback. */
  readonly message: Uint8Array
  /** A vendor that changes its key may sign with both. */
  readonly signatures: ReadonlyArray<Uint8Array>
}

/** How a vendor's callbacks are told from those of others. ADR 0107. */
export interface CallbackScheme {
  /** Where the keys come from: published for everybody, or told to the account alone. */
  readonly keys:
    | {
        readonly _tag: "Published"
        readonly url: string
        readonly read: (bytes: Uint8Array) => ReadonlyArray<string>
      }
    | { readonly _tag: "Asked"; readonly ask: Effect.Effect<ReadonlyArray<string>, VendorError> }
  /** `undefined`: it is not signed at all, or not in this vendor's way. */
  readonly sealOf: (callback: InboundCallback) => Seal | undefined
  readonly isSigned: (seal: Seal, key: string) => boolean
}

/** Unix seconds as the vendors write them. */
export const secondsIn = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,12}$/u.test(text) ? Number(text) : undefined
