import { placeholder } from "../../catalog/jobs/JobProtocol.ts"
import type { JobProtocol } from "../../catalog/jobs/JobProtocol.ts"

/** `{name:2}` matches two segments, and `{version}` one without a colon. */
const patternOf = (form: string): RegExp => {
  const literal = form.replaceAll(".", "\\.")
  const source = literal.replaceAll(placeholder, (_, name: string, count = "1") => {
    const segments = Array.from({ length: Number(count) }, () => "[^/:]+")
    return `(?<${name}>${segments.join("/")})`
  })
  return new RegExp(`^${source}$`, "u")
}

/** The path of the first form that a model's id has, and the parts of the id that it names. */
export const formOf = ({ forms }: JobProtocol["submit"], model: string) => {
  for (const { model: form, path } of forms ?? []) {
    const named = patternOf(form).exec(model)?.groups
    if (named !== undefined) return { path, named: { ...named } }
  }
  return undefined
}
