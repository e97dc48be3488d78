import type { ComponentChildren } from "preact"
import { hrefOf, navigate } from "../router/location.ts"
import type { Query } from "../router/location.ts"

interface Props {
  /** Below `/console`. */
  readonly to: string
  readonly query?: Query
  readonly class?: string
  readonly isCurrent?: boolean
  readonly children: ComponentChildren
}

/** A link to a page of the console. With a modifier key, the browser handles it like any other link. */
export const Link = ({ children, class: name, isCurrent, query, to }: Props) => {
  const href = hrefOf(to, query)
  return (
    <a
      href={href}
      class={name}
      aria-current={isCurrent === true ? "page" : undefined}
      onClick={(event) => {
        const isPlain = !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
        if (event.button !== 0 || !isPlain) return
        event.preventDefault()
        navigate(href)
      }}
    >
      {children}
    </a>
  )
}
