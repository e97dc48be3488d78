import { mediaPath } from "../../api/address.ts"
import { dataUriOf } from "../../api/files.ts"
import { Offline } from "../../api/problem.ts"
import type { Schemas } from "../../api/schema.ts"

type Task = Schemas["TaskTimeline"]

const reference = /^artifact:art_[0-9a-f]{32}$/u

/** Visits each text of the body, in fields and lists, with its pointer. */
const mapTexts = (body: unknown, by: (pointer: string, text: string) => string): unknown => {
  if (typeof body !== "object" || body === null) return body
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      if (typeof value === "string") return [name, by(`#/${name}`, value)]
      if (!Array.isArray(value)) return [name, value]
      return [
        name,
        value.map((item, index) =>
          typeof item === "string" ? by(`#/${name}/${index}`, item) : item
        )
      ]
    })
  )
}

/** The pointers of the media sent with the request. */
const referencesIn = ({ body }: Task): ReadonlyArray<string> => {
  const found: Array<string> = []
  mapTexts(body, (pointer, text) => {
    // A prompt may look like a reference
    if (reference.test(text) && pointer !== "#/prompt") found.push(pointer)
    return text
  })
  return found
}

/** Whether input media have been deleted. */
export const hasLostMedia = (task: Task): boolean => {
  const kept = new Set(task.inputs.map(({ pointer }) => pointer))
  return referencesIn(task).some((pointer) => !kept.has(pointer))
}

const read = async (url: string): Promise<string> => {
  const response = await fetch(mediaPath(url), { credentials: "same-origin" })
  if (!response.ok) throw new Offline("A medium of the input cannot be read")
  return dataUriOf(await response.blob())
}

/** The body as it was sent, with stored media put back. */
export const withMedia = async (task: Task): Promise<unknown> => {
  const media = new Map(
    await Promise.all(
      task.inputs.map(async ({ pointer, url }) => [pointer, await read(url)] as const)
    )
  )
  return mapTexts(task.body, (pointer, text) => media.get(pointer) ?? text)
}
