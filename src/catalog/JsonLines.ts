import { pointerOf } from "./FieldFaults.ts"

const token = /"[^"\\]*(?:\\[^][^"\\]*)*"|[{}[\]:,]|[^\s{}[\]:,"]+/gu

/** An open object or array: the token of the member that is next in a pointer. */
interface Open {
  index: number | undefined
  member: string
}

const tokenOf = (key: PropertyKey): string => pointerOf([key]).slice(1)

/** `#/a/b` and `#/a` and `#`. */
const withParents = (pointer: string): ReadonlyArray<string> => {
  const parts = pointer.split("/")
  return parts.map((_, index) => parts.slice(0, parts.length - index).join("/"))
}

/**
 * The lines, from 1, of the values at these pointers in a valid JSON text. What is missing has the line of the value
 * that lacks it.
 */
export const linesOf = (text: string, pointers: ReadonlyArray<string>): ReadonlyArray<number> => {
  const wanted = new Set(pointers.flatMap(withParents))
  // A file may be nested more deeply than any pointer names
  const levels = Math.max(...pointers.map((pointer) => pointer.split("/").length))
  const starts = new Map<string, number>()
  const open: Array<Open> = []
  let isKey = false
  for (const { 0: part, index: start } of text.matchAll(token)) {
    const inner = open.at(-1)
    if (part === "}" || part === "]") {
      open.pop()
      isKey = false
    } else if (part === ",") {
      isKey = inner?.index === undefined
      if (inner?.index !== undefined) {
        inner.index += 1
        inner.member = tokenOf(inner.index)
      }
    } else if (isKey && inner !== undefined) {
      inner.member = tokenOf(String(JSON.parse(part)))
      isKey = false
    } else if (part !== ":") {
      if (open.length < levels) {
        const pointer = `#${open.map(({ member }) => member).join("")}`
        if (wanted.has(pointer)) starts.set(pointer, start)
      }
      if (part === "{" || part === "[") {
        const isArray = part === "["
        open.push({ index: isArray ? 0 : undefined, member: isArray ? tokenOf(0) : "" })
        isKey = !isArray
      }
    }
  }
  return pointers.map((pointer) => {
    const at = withParents(pointer).find((it) => starts.has(it)) ?? ""
    return text.slice(0, starts.get(at) ?? 0).split("\n").length
  })
}
