import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"

interface Props {
  readonly name: string
  /** The content has a fault, which must be visible. */
  readonly isFaulty: boolean
  readonly isOpenAtFirst?: boolean
  readonly children: ComponentChildren
}

/** Content that few users need, collapsed at first. Once opened it stays open. */
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
