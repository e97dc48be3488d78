import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { texts } from "../texts/en.ts"

interface Props {
  readonly title: string
  /** Buttons of the page. */
  readonly children?: ComponentChildren
}

let isFirst = true

/** The heading of a page. It takes the focus when the page was opened from another one. */
export const PageHeader = ({ children, title }: Props) => {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · ${texts.console}`
  }, [title])
  useEffect(() => {
    if (!isFirst) heading.current?.focus()
    isFirst = false
  }, [])
  return (
    <header class="page-header">
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children !== undefined && <div class="actions">{children}</div>}
    </header>
  )
}
