import { type Command, Option } from 'commander';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { configOption } from '../config-option.ts';
import { type AdminClient, createAdminClient } from './admin-client.ts';
import { findGateway, type GatewayOptions } from './find-gateway.ts';

/** The options of every command that asks a gateway: which one it is. */
export function withGateway(command: Command): Command {
  return command
    .addOption(new Option('--admin <url>', 'the admin listener of the gateway').env('TOLLGATE_ADMIN'))
    .option('--ca <file>', 'the authority of its certificate, PEM')
    .addOption(configOption());
}

/** @throws a CommandError that says what to set, where it cannot be known which gateway, or no token is there */
export function clientOf(options: GatewayOptions): AdminClient {
  return createAdminClient(findGateway(options, process.env), defaultBounds);
}
