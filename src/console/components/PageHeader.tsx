import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { basePath } from "../api/address.ts"
import { location } from "../router/location.ts"
import { matchPath } from "../router/match.ts"
import { routes } from "../routes.ts"
import { texts } from "../texts/en.ts"
import { Icon } from "./Icon.tsx"
import { Link } from "./Link.tsx"

interface Props {
  /** Absent: the title of the route. */
  readonly title?: string | undefined
  /** A sentence below the title. */
  readonly about?: string
  /** The path of the list to which the page belongs. */
  readonly back?: string
  /** The page's buttons. */
  readonly children?: ComponentChildren
}

let isFirst = true

/** The heading of a page. It receives the focus when the page was opened from another page. */
export const PageHeader = ({ about, back, children, title: own }: Props) => {
  const { path } = location.value
  const route = routes.find((it) => matchPath(it.path, path) !== undefined)
  const title = own ?? route?.title ?? texts.product
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · ${texts.product}`
  }, [title])
  useEffect(() => {
    if (!isFirst) heading.current?.focus({ preventScroll: true })
    isFirst = false
  }, [])
  return (
    <header class="page-header">
      <div class="heading">
        {back !== undefined && (
          <Link to={back} class="back">
            <Icon name="back" />
            {routes.find((it) => it.path === back)?.title}
          </Link>
        )}
        <div class="title">
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {route?.docs !== undefined && <DocsLink to={route.docs} />}
        </div>
        {about !== undefined && <p class="about">{about}</p>}
      </div>
      {children !== undefined && <div class="actions">{children}</div>}
    </header>
  )
}

/** A link to the documentation of this page. */
const DocsLink = ({ to }: { readonly to: string }) => (
  <a
    class="docs"
    href={`${basePath}/docs#tag/${to}`}
    target="_blank"
    rel="noreferrer"
    title={texts.documents}
    aria-label={texts.documents}
  >
    <Icon name="book" />
  </a>
)
