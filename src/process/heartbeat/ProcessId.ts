import { SecureRandom } from "effect/crypto"
import type { Secrets } from "../secrets/Secrets.ts"

type Mac = Pick<Secrets["Service"], "mac">
type Macs = Pick<Secrets["Service"], "macs">

const purpose = "process"

/** 32 bits: the tags of two keys collide by chance once in four billion cases. */
const tagOf = (mac: string): string => mac.slice(0, 8)

const partsOf = (processId: string) => {
  const [, uuid = "", tag] = processId.split("_")
  return { uuid, tag }
}

/**
 * A process id with a tag of the process's first master key. Processes that have the key can recognize the tag.
 * ADR 0222
 */
export const makeProcessId = (secrets: Mac): string => {
  const uuid = SecureRandom.uuidV4Unsafe()
  return `proc_${uuid}_${tagOf(secrets.mac(purpose, uuid))}`
}

/** Whether the process encrypts under the first of these master keys. */
export const encryptsUnder = (secrets: Mac, processId: string): boolean => {
  const { tag, uuid } = partsOf(processId)
  return tag === tagOf(secrets.mac(purpose, uuid))
}

/** Whether ciphertext of the process can be decrypted with one of these master keys; `true` if the id has no tag. */
export const isReadable = (secrets: Macs, processId: string): boolean => {
  const { tag, uuid } = partsOf(processId)
  return tag === undefined || secrets.macs(purpose, uuid).some((mac) => tag === tagOf(mac))
}
