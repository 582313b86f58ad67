import type { ApolloServerPlugin } from '@apollo/server';
import { GraphQLError, getVariableValues } from 'graphql';
import { entitiesAnswered, refuseTooLarge } from './limits.ts';
import { measureOperation } from './operation-size.ts';
import { requestScope } from './request-scope.ts';
import { variableProblems } from './variable-check.ts';

/**
 * Looks at the operation that was chosen and at its variables before anything of it runs: whether the service has such
 * operations, whether the variables fit, and whether it asks for too much. The scope of the request learns its name.
 */
export function operationPlugin(): ApolloServerPlugin<object> {
  return {
    async requestDidStart() {
      return {
        async didResolveOperation({ schema, document, operation, request, contextValue }) {
          if (operation === undefined) return;
          const scope = requestScope.getStore();
          if (scope) scope.operationName = operation.name?.value.slice(0, 100);
          // Validation has nothing to compare the fields of such an operation with, and lets it pass.
          if (!schema.getRootType(operation.operation)) {
            throw refusal('OPERATION_RESOLUTION_FAILURE', `This service has no ${operation.operation}.`);
          }
          const given = request.variables ?? {};
          const { coerced } = getVariableValues(schema, operation.variableDefinitions ?? [], given, {
            maxErrors: 1,
          });
          if (coerced === undefined) {
            throw refusal('BAD_USER_INPUT', variableProblems(schema, operation, given).join(' '));
          }
          const answered = entitiesAnswered(contextValue);
          refuseTooLarge(measureOperation(schema, document, operation, coerced, answered), answered);
        },
      };
    },
  };
}

function refusal(code: string, message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code, http: { status: 400 } } });
}
