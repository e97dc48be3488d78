import { timingSafeEqual } from "node:crypto"

/** Compares signatures, hashes and passwords in a time that depends only on their lengths. */
export const isSameBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && timingSafeEqual(a, b)
