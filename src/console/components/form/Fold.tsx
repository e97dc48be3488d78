import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"

interface Props {
  readonly name: string
  /** What is within has a fault, which must be seen. */
  readonly isFaulty: boolean
  readonly isOpenAtFirst?: boolean
  readonly children: ComponentChildren
}

/** What few need, folded away; once open it stays so. */
export const Fold = ({ children, isFaulty, isOpenAtFirst = false, name }: Props) => {
  const [isOpen, setOpen] = useState(isOpenAtFirst)
  return (
    <details
      class="advanced"
      open={isOpen || isFaulty}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>{name}</summary>
      <div class="advanced-fields">{children}</div>
    </details>
  )
}
