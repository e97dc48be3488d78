import { CopyButton } from "./CopyButton.tsx"
import { None } from "./Values.tsx"

interface Props {
  readonly name: string
  readonly value: string | null
}

/** An id to be copied; where there is no room its end is cut off. */
export const Id = ({ name, value }: Props) =>
  value === null ? (
    <None />
  ) : (
    <span class="id">
      <code title={value}>{value}</code>
      <CopyButton text={value} what={name} />
    </span>
  )
