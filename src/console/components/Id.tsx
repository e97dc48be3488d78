import { CopyButton } from "./CopyButton.tsx"
import { None, Pair } from "./Values.tsx"

interface Props {
  readonly name: string
  readonly value: string | null
}

/** An id with a copy button. Its end is cut off where space is short. */
export const Id = ({ name, value }: Props) =>
  value === null ? (
    <None />
  ) : (
    <span class="id">
      <code title={value}>{value}</code>
      <CopyButton text={value} what={name} />
    </span>
  )

/** The same in `<dl class="pairs">`. */
export const IdPair = (props: Props) => (
  <Pair name={props.name}>
    <Id {...props} />
  </Pair>
)
