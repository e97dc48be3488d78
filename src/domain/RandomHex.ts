import { SecureRandom } from "effect/crypto"

/** Read in bulk: one system call serves hundreds of ids. */
const poolBytes = 4096
let pool = ""
let used = 0

/** Random hex digits, used once. */
export const randomHex = (digits: number): string => {
  if (used + digits > pool.length) {
    pool = Buffer.from(SecureRandom.randomBytesUnsafe(poolBytes)).toString("hex")
    used = 0
  }
  const text = pool.slice(used, used + digits)
  used += digits
  return text
}
