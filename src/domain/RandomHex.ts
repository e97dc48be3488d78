import { SecureRandom } from "effect/crypto"

/** Random hex digits are drawn in bulk: one call of the system for hundreds of ids. */
const poolBytes = 4096
let pool = ""
let used = 0

/** So many random hex digits; none is given twice. */
export const randomHex = (digits: number): string => {
  if (used + digits > pool.length) {
    pool = Buffer.from(SecureRandom.randomBytesUnsafe(poolBytes)).toString("hex")
    used = 0
  }
  const text = pool.slice(used, used + digits)
  used += digits
  return text
}
