import { SecureRandom } from "effect/crypto"

/** Random bytes are read in bulk, so that one system call serves hundreds of ids. */
const poolBytes = 4096
let pool = ""
let used = 0

/** Random hex digits. Never returns the same bytes twice. */
export const randomHex = (digits: number): string => {
  if (used + digits > pool.length) {
    pool = Buffer.from(SecureRandom.randomBytesUnsafe(poolBytes)).toString("hex")
    used = 0
  }
  const text = pool.slice(used, used + digits)
  used += digits
  return text
}
