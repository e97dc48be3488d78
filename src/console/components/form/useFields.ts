import { useState } from "preact/hooks"

/** The values of a form as typed, and the attributes of its text fields. */
export const useFields = <Fields extends object>(
  first: () => Fields,
  faultsOf: (fields: Fields) => ReadonlyMap<string, string> = () => new Map()
) => {
  const [fields, setFields] = useState(first)
  const faults = faultsOf(fields)
  return {
    fields,
    isFaulty: faults.size > 0,
    change: (part: Partial<Fields>) => setFields((before) => ({ ...before, ...part })),
    text: (name: keyof Fields & string) => ({
      value: String(fields[name]),
      error: faults.get(name),
      onText: (value: string) => setFields((before) => ({ ...before, [name]: value }))
    })
  }
}
