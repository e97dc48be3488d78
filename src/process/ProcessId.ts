import { SecureRandom } from "effect/crypto"
import type { Secrets } from "./Secrets.ts"

type Mac = Pick<Secrets["Service"], "mac">

/** Of 32 bits: two keys agree in it by chance once in four billion processes. */
const tagOf = ({ mac }: Mac, uuid: string): string => mac("process", uuid).slice(0, 8)

/** An id that shows whoever has the key under which master key its process encrypts. ADR 0236 */
export const makeProcessId = (secrets: Mac): string => {
  const uuid = SecureRandom.uuidV4Unsafe()
  return `proc_${uuid}_${tagOf(secrets, uuid)}`
}

/** Whether the process encrypts under the first master key of these secrets. Ids of earlier releases do not tell. */
export const encryptsUnder = (secrets: Mac, processId: string): boolean => {
  const [, uuid = "", tag] = processId.split("_")
  return tag === tagOf(secrets, uuid)
}
