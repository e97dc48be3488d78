import { SecureRandom } from "effect/crypto"
import type { Secrets } from "../secrets/Secrets.ts"

type Mac = Pick<Secrets["Service"], "mac">
type Macs = Pick<Secrets["Service"], "macs">

const purpose = "process"

/** 32 bits: two keys collide by chance once in four billion processes. */
const tagOf = (mac: string): string => mac.slice(0, 8)

const partsOf = (processId: string) => {
  const [, uuid = "", tag] = processId.split("_")
  return { uuid, tag }
}

/** An id that reveals to holders of the key which master key its process encrypts under. ADR 0222 */
export const makeProcessId = (secrets: Mac): string => {
  const uuid = SecureRandom.uuidV4Unsafe()
  return `proc_${uuid}_${tagOf(secrets.mac(purpose, uuid))}`
}

/** Whether the process encrypts under the first master key of these secrets. */
export const encryptsUnder = (secrets: Mac, processId: string): boolean => {
  const { tag, uuid } = partsOf(processId)
  return tag === tagOf(secrets.mac(purpose, uuid))
}

/** Whether ciphertext of the process can be read under one of these master keys; `true` if the id does not show it. */
export const isReadable = (secrets: Macs, processId: string): boolean => {
  const { tag, uuid } = partsOf(processId)
  return tag === undefined || secrets.macs(purpose, uuid).some((mac) => tag === tagOf(mac))
}
