import asyncio

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from world import is_sandbox, key, shows, url

shows("mcp")


async def main() -> None:
    http = create_mcp_http_client(headers={"authorization": f"Bearer {key}"})
    async with streamable_http_client(f"{url}/mcp", http_client=http) as (read, write, *_):
        async with ClientSession(read, write) as session:
            await session.initialize()
            tools = {tool.name for tool in (await session.list_tools()).tools}
            assert {"list_models", "quote", "create_task", "get_task", "wallet"} <= tools, tools
            wallet = await session.call_tool("wallet", {})
            assert not wallet.is_error, wallet
            quoted = await session.call_tool(
                "quote", {"model": "text-to-image-preview", "input": {"prompt": "A lighthouse"}}
            )
            assert not quoted.is_error, quoted
            if is_sandbox:
                made = await session.call_tool(
                    "create_task", {"model": "text-to-image-preview", "input": {"prompt": "A lighthouse"}}
                )
                assert not made.is_error, made
            wrong = await session.call_tool("quote", {"model": "nothing", "input": {}})
            assert wrong.is_error, wrong


asyncio.run(main())
